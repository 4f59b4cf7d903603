/** States of rows: `new` and `taken` wait for Redis, the others have ended. */
export const ROW_STATES = ['new', 'taken', 'sent', 'refused', 'poisoned'] as const;

export type RowState = (typeof ROW_STATES)[number];
