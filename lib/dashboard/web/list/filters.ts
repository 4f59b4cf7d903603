import type { State } from '../api/types.js';

export const FILTERS = ['type', 'id', 'payload', 'error'] as const;
export type Filter = (typeof FILTERS)[number];
export type Filters = Partial<Record<Filter, string>>;

export const HINTS: Readonly<Record<Filter, string>> = {
  type: 'type begins with',
  id: 'id begins with',
  payload: 'payload contains',
  error: 'error contains',
};

const FAILS: readonly State[] = ['retry', 'archived', 'pending', 'active', 'scheduled'];

/** A task without an attempt has no error. */
export const filtersOf = (state: State): readonly Filter[] =>
  FAILS.includes(state) ? FILTERS : FILTERS.filter((filter) => filter !== 'error');

export const chosenFilters = (query: Readonly<Record<string, string>>): Filters =>
  Object.fromEntries(FILTERS.filter((filter) => query[filter]).map((filter) => [filter, query[filter]]));

export const isSearch = (filters: Filters): boolean => Object.keys(filters).length > 0;
