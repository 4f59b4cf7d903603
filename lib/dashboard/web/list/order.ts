import type { ListScope } from '../api/endpoints.js';
import type { State } from '../api/types.js';

/** What has ended is looked at for what happened last; what is still to run, for what comes next. */
const NEWEST_FIRST: readonly State[] = ['archived', 'completed'];

/** The order to ask for where a list begins; a cursor has one already. */
export const orderOf = ({ state }: ListScope, cursor: string | undefined): 'newest' | undefined =>
  cursor === undefined && NEWEST_FIRST.includes(state) ? 'newest' : undefined;
