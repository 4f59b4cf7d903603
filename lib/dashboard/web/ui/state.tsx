/** The state by its name; the colour only repeats it. */
export const StateChip = ({ state }: { state: string }) => <span class={`chip color-${state}`}>{state}</span>;
