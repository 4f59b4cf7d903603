import type { Broker } from '../broker/broker.js';
import { InvalidOptionError } from '../errors.js';
import { readAttempts, type AttemptList } from '../task/attempts.js';
import { requireNonBlank } from '../validation.js';
import { requireQueueName } from './known-queue.js';

/** @throws InvalidOptionError; UndecodableMessageError */
export async function listAttempts(
  { inspection }: Pick<Broker, 'inspection'>,
  queue: string,
  id: string,
): Promise<AttemptList | undefined> {
  requireQueueName(queue);
  requireNonBlank(id, 'task ID', InvalidOptionError);
  const task = await inspection.getTask(queue, id); // first: an attempt that ends meanwhile has an entry, and is not missed
  if (!task) return undefined;
  return readAttempts(await inspection.attempts(queue, id), task.message.retried);
}
