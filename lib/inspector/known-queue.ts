import type { InspectionRole } from '../broker/inspection.js';
import { InvalidOptionError, QueueNotFoundError } from '../errors.js';
import { isBlank, refuseBraces, requireNonBlank } from '../validation.js';

/** @throws InvalidOptionError */
export const requireQueueName = (queue: string): string => requireNonBlank(queue, 'queue name', InvalidOptionError);

/** @throws InvalidOptionError; QueueNotFoundError when nothing was ever enqueued to it, or it was deleted */
export async function requireQueue(inspection: Pick<InspectionRole, 'hasQueue'>, queue: string): Promise<void> {
  await requireQueueNameOrQueue(inspection, queue);
  if (!(await inspection.hasQueue(queue))) throw new QueueNotFoundError(queue);
}

/** Another program may have listed a queue with a blank name: it is shown and deleted like any other. @throws InvalidOptionError */
export async function requireQueueNameOrQueue(
  inspection: Pick<InspectionRole, 'hasQueue'>,
  queue: string,
): Promise<void> {
  const isListed = typeof queue === 'string' && isBlank(queue) && (await inspection.hasQueue(queue));
  if (!isListed) requireQueueName(queue);
}

/** Only asynq creates queues with a brace in their name. @throws InvalidOptionError unless the queue exists */
export async function requireUsableName(inspection: Pick<InspectionRole, 'hasQueue'>, queue: string): Promise<void> {
  if (!(await inspection.hasQueue(queue))) refuseBraces(queue, 'queue name', InvalidOptionError);
}
