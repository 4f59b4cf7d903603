import type { Place } from '../broker/inspection.js';
import { InvalidOptionError } from '../errors.js';
import { rejectUnknownKeys, requireObject } from '../validation.js';
import type { ArchiveLimit } from './archive-limit.js';
import type { MovableState } from './bulk.js';
import { toPlace } from './list-options.js';

/** Where somebody has seen a task, so that nothing is done to it once it has moved on. */
export interface MoveOptions {
  /** Only while it is in this state. Default: wherever it is. */
  readonly state?: MovableState;
  /** The group; required for `aggregating`, and for nothing else. */
  readonly group?: string;
}

export interface ArchiveOptions extends MoveOptions, ArchiveLimit {}

/** @param method for messages @throws InvalidOptionError */
export function toOrigin(method: string, options: MoveOptions, more: readonly string[] = []): Place | undefined {
  requireObject(options, `the options of ${method}`, InvalidOptionError);
  rejectUnknownKeys(options, ['state', 'group', ...more], `option of ${method}`, InvalidOptionError);
  const { state, group } = options;
  if (state === undefined && group === undefined) return undefined;
  const place = toPlace(state as MovableState, group);
  if (place.state !== 'active') return place;
  throw new InvalidOptionError('active tasks cannot be moved; cancel them with cancelProcessing');
}
