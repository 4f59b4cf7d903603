import type { InspectorBroker } from '../broker/inspection.js';
import { InvalidOptionError, QueueNotFoundError } from '../errors.js';
import { isBlank, refuseBraces, requireNonBlank } from '../validation.js';

/** @throws InvalidOptionError */
export const requireQueueName = (queue: string): string => requireNonBlank(queue, 'queue name', InvalidOptionError);

/** @throws InvalidOptionError; QueueNotFoundError when nothing was ever enqueued to it, or it was deleted */
export async function requireQueue(broker: Pick<InspectorBroker, 'hasQueue'>, queue: string): Promise<void> {
  await requireQueueNameOrQueue(broker, queue);
  if (!(await broker.hasQueue(queue))) throw new QueueNotFoundError(queue);
}

/** Another program may have listed a queue with a blank name: it is shown and deleted like any other. @throws InvalidOptionError */
export async function requireQueueNameOrQueue(broker: Pick<InspectorBroker, 'hasQueue'>, queue: string): Promise<void> {
  const isListed = typeof queue === 'string' && isBlank(queue) && (await broker.hasQueue(queue));
  if (!isListed) requireQueueName(queue);
}

/** Only asynq creates queues with a brace in their name. @throws InvalidOptionError unless the queue exists */
export async function requireUsableName(broker: Pick<InspectorBroker, 'hasQueue'>, queue: string): Promise<void> {
  if (!(await broker.hasQueue(queue))) refuseBraces(queue, 'queue name', InvalidOptionError);
}
