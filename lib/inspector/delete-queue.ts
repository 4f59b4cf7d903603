import type { DeletionOptions } from '../broker/inspection.js';
import { InvalidOptionError } from '../errors.js';
import { describe, rejectUnknownKeys, requireFunction, requireObject } from '../validation.js';

export interface DeleteQueueOptions {
  /** Also when tasks are waiting in it, archived or retained. Default false. */
  readonly force?: boolean;
  /** Told after every step how many tasks were deleted so far. */
  readonly onProgress?: (deleted: number) => void;
  /** Stops between two steps; the call then rejects with its reason. */
  readonly signal?: AbortSignal;
}

/** @throws InvalidOptionError */
export function toDeletion(options: DeleteQueueOptions): DeletionOptions {
  requireObject(options, 'the options of deleteQueue', InvalidOptionError);
  rejectUnknownKeys(options, ['force', 'onProgress', 'signal'], 'option of deleteQueue', InvalidOptionError);
  const { force = false, onProgress, signal } = options;
  if (typeof force !== 'boolean') throw new InvalidOptionError(`force must be true or false, not ${describe(force)}`);
  requireSteering(onProgress, signal);
  return { force, onProgress, signal };
}

/** @throws InvalidOptionError */
export function requireSteering(onProgress: unknown, signal: unknown): void {
  if (onProgress !== undefined) requireFunction(onProgress, 'onProgress', InvalidOptionError);
  if (signal === undefined || signal instanceof AbortSignal) return;
  throw new InvalidOptionError(`signal must be an AbortSignal, not ${describe(signal)}`);
}
