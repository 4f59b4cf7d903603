/** The state by its name; the colour only repeats it. */
export const StateChip = ({ state }: { state: string }) => <span class={`chip tone-${state}`}>{state}</span>;
