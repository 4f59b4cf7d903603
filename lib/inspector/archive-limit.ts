import { InvalidOptionError } from '../errors.js';
import { requireInteger } from '../validation.js';

export interface ArchiveLimit {
  /**
   * Archives only while fewer tasks of the queue are archived, and deletes none of those for it. Default: however many there are; the
   * archive then loses its oldest beyond 9,999, and those older than 90 days.
   */
  readonly maxArchived?: number;
}

/** @throws InvalidOptionError */
export function requireArchiveLimit({ maxArchived }: ArchiveLimit): void {
  if (maxArchived !== undefined) requireInteger(maxArchived, 'maxArchived', InvalidOptionError, { least: 0 });
}
