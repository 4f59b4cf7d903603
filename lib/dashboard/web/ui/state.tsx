import type { State } from '../api/types.js';

/** The state by its name; the colour only repeats it. */
export const StateChip = ({ state }: { state: State }) => <span class={`chip tone-${state}`}>{state}</span>;
