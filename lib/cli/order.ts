import type { TaskState } from '../wire/states.js';

export const ORDERS = ['newest', 'oldest'] as const;
export type Order = (typeof ORDERS)[number];

/** What has ended is looked at for what happened last; what is still to run, for what comes next. */
const NEWEST_FIRST: readonly TaskState[] = ['archived', 'completed'];

/** The direction of a list that does not go on after a cursor, which has one already. */
export function directionOf(
  state: TaskState,
  { cursor, order }: { readonly cursor?: string | undefined; readonly order?: Order | undefined },
): { newestFirst?: boolean } {
  if (order !== undefined) return { newestFirst: order === 'newest' };
  return cursor === undefined && NEWEST_FIRST.includes(state) ? { newestFirst: true } : {};
}
