import type { ListScope } from '../api/endpoints.js';
import type { State } from '../api/types.js';

/** Finished tasks are listed newest first; the others by when they run next. */
const NEWEST_FIRST: readonly State[] = ['archived', 'completed'];

/** The order of a list's first page. A cursor keeps the order it was made in. */
export const orderOf = ({ state }: ListScope, cursor: string | undefined): 'newest' | undefined =>
  cursor === undefined && NEWEST_FIRST.includes(state) ? 'newest' : undefined;
