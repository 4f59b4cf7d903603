import type { EnqueueRequest } from '../broker/broker.js';
import { InvalidTaskError } from '../errors.js';
import type { Acknowledge } from '../task/acknowledge.js';
import type { PreparedTask } from './prepared-task.js';

/** A request whose caller waits until replicas or files have the task. */
export interface AcknowledgedRequest extends EnqueueRequest {
  readonly acknowledge: Acknowledge;
}

/**
 * @param own of the call or the definition; `undefined`: as the client does
 * @param base of the client
 * @throws InvalidTaskError when it is asked for, and the task goes a way of its own
 */
export function acknowledging(
  task: PreparedTask,
  own: Acknowledge | false | undefined,
  base: Acknowledge | false,
): PreparedTask {
  const acknowledge = own ?? base;
  if (acknowledge === false) return task;
  if (!task.linked) {
    const request: AcknowledgedRequest = { ...task.request, acknowledge };
    return { ...task, request, acknowledge: own === undefined ? 'default' : 'asked' };
  }
  if (own === undefined) return task;
  throw new InvalidTaskError(
    `task "${task.request.message.type}" has acknowledge and after, or key and rememberFor: what it changes is in several places; leave one of them out`,
  );
}

/** The task as it is sent after the call: nobody waits for replicas then. @throws InvalidTaskError when that is asked for */
export function withoutCaller(task: PreparedTask): PreparedTask {
  const { acknowledge, ...rest } = task;
  if (acknowledge === undefined) return task;
  if (acknowledge === 'default') return rest;
  throw new InvalidTaskError(
    `task "${task.request.message.type}" has acknowledge, and is enqueued in a transaction: the call is over before the task is sent; ` +
      'leave one of them out',
  );
}
