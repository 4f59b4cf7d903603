/** The name of a state; the colour only repeats it. */
export const StateChip = ({ state }: { state: string }) => <span class={`chip color-${state}`}>{state}</span>;
