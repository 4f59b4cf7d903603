import type { InspectorBroker } from '../broker/inspection.js';
import { InvalidOptionError, QueueNotFoundError } from '../errors.js';
import { refuseBraces, requireNonBlank } from '../validation.js';

/** @throws InvalidOptionError */
export const requireQueueName = (queue: string): string => requireNonBlank(queue, 'queue name', InvalidOptionError);

/** @throws InvalidOptionError; QueueNotFoundError when nothing was ever enqueued to it, or it was deleted */
export async function requireQueue(broker: Pick<InspectorBroker, 'hasQueue'>, queue: string): Promise<void> {
  requireQueueName(queue);
  if (!(await broker.hasQueue(queue))) throw new QueueNotFoundError(queue);
}

/** A queue with a brace in its name can only be one that asynq made. @throws InvalidOptionError unless it is there */
export async function requireUsableName(broker: Pick<InspectorBroker, 'hasQueue'>, queue: string): Promise<void> {
  if (!(await broker.hasQueue(queue))) refuseBraces(queue, 'queue name', InvalidOptionError);
}
