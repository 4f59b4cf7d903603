import { InvalidTaskError } from '../errors.js';
import { describe, nearest } from '../validation.js';

/** One of the known values of an option. @throws InvalidTaskError with the nearest known one */
export function oneOf<T extends string>(value: unknown, known: readonly T[], what: string): T {
  const found = known.find((one) => one === value);
  if (found !== undefined) return found;
  const near = typeof value === 'string' ? nearest(value, known) : undefined;
  const remedy = near ? `did you mean "${near}"?` : `it is one of ${known.join(', ')}`;
  throw new InvalidTaskError(`${what}: ${describe(value)} is unknown; ${remedy}`);
}
