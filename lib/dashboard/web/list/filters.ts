import type { State } from '../api/types.js';

export const FILTERS = ['type', 'id', 'payload', 'field', 'error', 'older_than'] as const;
export type Filter = (typeof FILTERS)[number];
export type Filters = Partial<Record<Filter, string>>;

export const HINTS: Readonly<Record<Filter, string>> = {
  type: 'type begins with',
  id: 'id begins with',
  payload: 'payload contains',
  field: 'field, as order.id=17',
  error: 'error contains',
  older_than: 'in this state for, as 2h',
};

const FAILS: readonly State[] = ['retry', 'archived', 'pending', 'active', 'scheduled'];

/** States of which it is known since when a task is in them. */
const DATED: readonly State[] = ['active', 'pending', 'retry', 'archived', 'completed'];

/** A task without an attempt has no error. */
export const filtersOf = (state: State): readonly Filter[] =>
  FILTERS.filter((filter) =>
    filter === 'error' ? FAILS.includes(state) : filter !== 'older_than' || DATED.includes(state),
  );

export const chosenFilters = (query: Readonly<Record<string, string>>): Filters =>
  Object.fromEntries(FILTERS.filter((filter) => query[filter]).map((filter) => [filter, query[filter]]));

export const isSearch = (filters: Filters): boolean => Object.keys(filters).length > 0;
