/** States of rows: `new`, `ordered` (new, and to be sent in order) and `taken` wait for Redis, the others have ended. */
export const ROW_STATES = ['new', 'ordered', 'taken', 'sent', 'existing', 'replaced', 'refused', 'poisoned'] as const;

/** States of rows that are removed when they are old, for SQL. */
export const REMOVED = "'sent', 'existing', 'replaced', 'refused'";

export type RowState = (typeof ROW_STATES)[number];
