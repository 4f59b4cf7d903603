import { BadRequest } from './api-error.js';
import type { QueryParameter } from './route.js';

const DEFAULT_PAGE_SIZE = 20;
const MAX_PAGE_SIZE = 200;

/** `undefined` for the default value. */
const unless = (value: number, otherwise: number): number | undefined => (value === otherwise ? undefined : value);

export const SIZE_PARAMETER: QueryParameter = {
  name: 'size',
  description: `entries, 1 to ${MAX_PAGE_SIZE}; default ${DEFAULT_PAGE_SIZE}`,
  integer: true,
  canonical: (query) => unless(sizeOf(query), DEFAULT_PAGE_SIZE),
};

const PAGE_PARAMETER: QueryParameter = {
  name: 'page',
  description: 'number of the page, from 1',
  integer: true,
  canonical: (query) => unless(pageOf(query), 1),
};

export const PAGE_PARAMETERS: readonly QueryParameter[] = [SIZE_PARAMETER, PAGE_PARAMETER];

export const CURSOR_PARAMETER: QueryParameter = {
  name: 'cursor',
  description: 'the next_cursor of the previous page; then `page` is ignored',
};

/** For lists with a cursor, which makes them ignore the page. */
export const CURSOR_PARAMETERS: readonly QueryParameter[] = [
  SIZE_PARAMETER,
  { ...PAGE_PARAMETER, canonical: (query) => (given(query, 'cursor') ? undefined : unless(pageOf(query), 1)) },
  CURSOR_PARAMETER,
];

export const ORDER_PARAMETER: QueryParameter = {
  name: 'order',
  description:
    '`newest` or `oldest`: by time, which for completed tasks is when they are deleted. Not for pending and active ones. ' +
    'Default `oldest`, as in asynqmon; with a cursor the order of the previous page',
  canonical: (query) => {
    const order = given(query, 'order');
    return order === 'oldest' && !given(query, 'cursor') ? undefined : order;
  },
};

/** The requested order; `undefined` if none is given. @throws BadRequest */
export function orderOf(query: URLSearchParams): { newestFirst?: boolean } {
  const order = query.get('order');
  if (order === null || order === '') return {};
  if (order === 'newest' || order === 'oldest') return { newestFirst: order === 'newest' };
  throw new BadRequest(`order is ${JSON.stringify(order)}; it must be newest or oldest`);
}

/** An integer of at least 1. Anything else is ignored, as in asynqmon. */
export function positive(query: URLSearchParams, name: string): number | undefined {
  const given = query.get(name);
  const value = given !== null && /^\d{1,15}$/.test(given) ? Number(given) : 0;
  return value >= 1 ? value : undefined;
}

export const sizeOf = (query: URLSearchParams): number =>
  Math.min(positive(query, 'size') ?? DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);

/** Keeps the product of page and size exact. */
const MAX_PAGE_NUMBER = 1_000_000_000;

export const pageOf = (query: URLSearchParams): number => Math.min(positive(query, 'page') ?? 1, MAX_PAGE_NUMBER);

/** A text that is not empty. */
export const given = (query: URLSearchParams, name: string): string | undefined => query.get(name) || undefined;

/** The query in canonical form: only declared parameters, in their order. */
export function canonicalQuery(parameters: readonly QueryParameter[], sent: URLSearchParams): URLSearchParams {
  const known = new URLSearchParams();
  for (const { name } of parameters) known.set(name, sent.get(name) ?? '');
  const canonical = new URLSearchParams();
  for (const parameter of parameters) {
    const value = parameter.canonical ? parameter.canonical(known) : given(known, parameter.name);
    if (value !== undefined) canonical.set(parameter.name, String(value));
  }
  return canonical;
}
