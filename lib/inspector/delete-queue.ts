import type { Broker } from '../broker/broker.js';
import type { DeletionOptions } from '../broker/inspection.js';
import { InvalidOptionError, QueueNotEmptyError } from '../errors.js';
import { describe, rejectUnknownKeys, requireFunction, requireObject } from '../validation.js';
import { requireQueue } from './known-queue.js';

export interface DeleteQueueOptions {
  /**
   * Whether to delete a queue that has waiting, archived or completed tasks, or keeps workflows or
   * batches. Those go on, and the queue stays listed until the last of them is deleted. Default false.
   */
  readonly force?: boolean;
  /** Called after every batch with the number of tasks deleted so far. */
  readonly onProgress?: (deleted: number) => void;
  /** Stops between two batches; the call then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** @throws QueueNotFoundError; QueueNotEmptyError */
export async function deleteQueue(
  broker: Pick<Broker, 'inspection' | 'administration'>,
  queue: string,
  options: DeleteQueueOptions,
): Promise<void> {
  const deletion = toDeletion(options);
  await requireQueue(broker.inspection, queue);
  const status = await broker.administration.deleteQueue(queue, deletion);
  const name = `queue=${JSON.stringify(queue)}`;
  if (status === 'active')
    throw new QueueNotEmptyError(`cannot remove queue with active tasks: ${name}; wait for them`);
  if (status === 'notEmpty')
    throw new QueueNotEmptyError(`queue is not empty: ${name}; \`force\` deletes its tasks, too`);
  if (status === 'kept') {
    throw new QueueNotEmptyError(
      `queue keeps workflows or batches: ${name}; delete them first (deleteWorkflow, deleteBatch). ` +
        '`force` deletes the rest of it, and they go on',
    );
  }
}

function toDeletion(options: DeleteQueueOptions): DeletionOptions {
  requireObject(options, 'the options of deleteQueue', InvalidOptionError);
  rejectUnknownKeys(options, ['force', 'onProgress', 'signal'], 'option of deleteQueue', InvalidOptionError);
  const { force = false, onProgress, signal } = options;
  if (typeof force !== 'boolean') throw new InvalidOptionError(`force must be true or false, not ${describe(force)}`);
  requireProgressOptions(onProgress, signal);
  return { force, onProgress, signal };
}

/** @throws InvalidOptionError */
export function requireProgressOptions(onProgress: unknown, signal: unknown): void {
  if (onProgress !== undefined) requireFunction(onProgress, 'onProgress', InvalidOptionError);
  if (signal === undefined || signal instanceof AbortSignal) return;
  throw new InvalidOptionError(`signal must be an AbortSignal, not ${describe(signal)}`);
}
