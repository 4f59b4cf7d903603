import type { SearchOptions } from '../../inspector/search.js';

/** What can be looked for in tasks: the beginning of type or id, text in payload or error. */
export type Criteria = Pick<SearchOptions, 'type' | 'id' | 'payload' | 'error'>;

const NAMES = /(?:^|\s)(type|id|payload|error)=/;

/**
 * `email:` is the beginning of a type; `id=`, `payload=`, `error=` and `type=` name what they look for, and can be combined:
 * `email: error=timed out`.
 *
 * @returns `undefined` when nothing is looked for
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
