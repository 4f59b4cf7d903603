import type { SearchOptions } from '../../inspector/search.js';

/** What tasks can be searched by: the start of type or id, text in payload or error. */
export type Criteria = Pick<SearchOptions, 'type' | 'id' | 'payload' | 'error'>;

const NAMES = /(?:^|\s)(type|id|payload|error)=/;

/**
 * Parses a filter: the start of a type (`email:`), or `id=…`, `payload=…`, `error=…` and `type=…`, also combined:
 * `email: error=timed out`.
 *
 * @returns `undefined` for an empty filter
 */
export function parseFilter(text: string): Criteria | undefined {
  const [type = '', ...named] = text.trim().split(NAMES);
  const criteria: { -readonly [Name in keyof Criteria]: string } = {};
  if (type.trim() !== '') criteria.type = type.trim();
  for (let i = 0; i + 1 < named.length; i += 2) {
    const value = named[i + 1]!.trim();
    if (value !== '') criteria[named[i] as keyof Criteria] = value;
  }
  return Object.keys(criteria).length > 0 ? criteria : undefined;
}
