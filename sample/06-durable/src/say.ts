/** One line; what is left of a progress bar is cleared first. */
export const say = (text: string): void => {
  if (process.stdout.isTTY) process.stdout.write('\r\u001b[2K');
  console.log(text);
};
