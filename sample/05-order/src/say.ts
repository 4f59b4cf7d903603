/** One line. A line that replaces a progress bar would be lost, so there is no bar without a terminal. */
export const say = (text: string): void => console.log(text);
