import { InvalidOptionError } from '../errors.js';
import { requireInteger } from '../validation.js';

export interface ArchiveLimit {
  /**
   * Archives only while fewer tasks of the queue are archived, and trims none of those. Default: no limit; the archive is then
   * trimmed to its limits: the newest 9,999 of the last 90 days, unless the queue has others.
   */
  readonly maxArchived?: number;
}

/** @throws InvalidOptionError */
export function requireArchiveLimit({ maxArchived }: ArchiveLimit): void {
  if (maxArchived !== undefined) requireInteger(maxArchived, 'maxArchived', InvalidOptionError, { least: 0 });
}
