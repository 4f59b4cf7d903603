import type { TaskLocation } from '../broker/inspection.js';
import { InvalidOptionError } from '../errors.js';
import { rejectUnknownKeys, requireObject } from '../validation.js';
import type { ArchiveLimit } from './archive-limit.js';
import type { MovableState } from './bulk.js';
import { toLocation } from './list-options.js';

/** Where the caller saw the task: nothing is done to it once it has left that state. */
export interface MoveOptions {
  /** Act only while the task is in this state. Default: in any state. */
  readonly state?: MovableState;
  /** The group; required for `aggregating`, refused for other states. */
  readonly group?: string;
}

export interface ArchiveOptions extends MoveOptions, ArchiveLimit {}

/** @param method for messages @throws InvalidOptionError */
export function toOrigin(method: string, options: MoveOptions, more: readonly string[] = []): TaskLocation | undefined {
  requireObject(options, `the options of ${method}`, InvalidOptionError);
  rejectUnknownKeys(options, ['state', 'group', ...more], `option of ${method}`, InvalidOptionError);
  const { state, group } = options;
  if (state === undefined && group === undefined) return undefined;
  const location = toLocation(state as MovableState, group);
  if (location.state !== 'active') return location;
  throw new InvalidOptionError('active tasks cannot be moved; cancel them with cancelProcessing');
}
