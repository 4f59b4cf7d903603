import type { DeletionOptions, InspectorBroker } from '../broker/inspection.js';
import { InvalidOptionError, QueueNotEmptyError } from '../errors.js';
import { describe, rejectUnknownKeys, requireFunction, requireObject } from '../validation.js';
import { requireQueue } from './known-queue.js';

export interface DeleteQueueOptions {
  /** Also when tasks are waiting in it, archived or retained. Default false. */
  readonly force?: boolean;
  /** Told after every step how many tasks were deleted so far. */
  readonly onProgress?: (deleted: number) => void;
  /** Stops between two steps; the call then rejects with its reason. */
  readonly signal?: AbortSignal;
}

/** Deletes the queue, or says why not. */
export async function deleteQueue(broker: InspectorBroker, queue: string, options: DeleteQueueOptions): Promise<void> {
  const deletion = toDeletion(options);
  await requireQueue(broker, queue);
  const status = await broker.deleteQueue(queue, deletion);
  const name = `queue=${JSON.stringify(queue)}`;
  if (status === 'active')
    throw new QueueNotEmptyError(`cannot remove queue with active tasks: ${name}; wait for them`);
  if (status === 'notEmpty')
    throw new QueueNotEmptyError(`queue is not empty: ${name}; \`force\` deletes its tasks, too`);
}

function toDeletion(options: DeleteQueueOptions): DeletionOptions {
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
