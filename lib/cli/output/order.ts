import type { TaskState } from '../../wire/states.js';

export const ORDERS = ['newest', 'oldest'] as const;
export type Order = (typeof ORDERS)[number];

/** Ended tasks are listed with the last one first, the others with the next one to run first. */
const NEWEST_FIRST: readonly TaskState[] = ['archived', 'completed'];

/** The direction of a list; none after a cursor, which contains it. */
export function directionOf(
  state: TaskState,
  { cursor, order }: { readonly cursor?: string | undefined; readonly order?: Order | undefined },
): { newestFirst?: boolean } {
  if (order !== undefined) return { newestFirst: order === 'newest' };
  return cursor === undefined && NEWEST_FIRST.includes(state) ? { newestFirst: true } : {};
}
