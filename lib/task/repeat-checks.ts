import { InvalidTaskError } from '../errors.js';
import type { LinkSettings } from './links.js';
import type { RepeatSettings } from './repeats.js';
import type { TaskSettings } from './settings.js';

/** Whether the lock alone decides, as asynq's does: such a task is enqueued like any unique one. */
export const isPlainRepeat = ({ policy, until }: RepeatSettings): boolean => policy === 'reject' && until !== 'expired';

/**
 * Checks the option about repeats of a task against its other options.
 *
 * @throws InvalidTaskError that names both
 */
export function checkRepeat(type: string, settings: TaskSettings, links: LinkSettings | undefined): void {
  const { repeat, processAt, processIn, taskId, group } = settings;
  if (!repeat) return;
  const { option, policy } = repeat;
  const refuse = (other: string, reason: string): never => {
    throw new InvalidTaskError(`task "${type}" has both ${option} and ${other}: ${reason}; leave one of them out`);
  };
  if (policy === 'debounce') {
    if (processIn !== undefined) refuse('processIn', 'its wait says when the task runs');
    if (processAt !== undefined) refuse('processAt', 'its wait says when the task runs');
  }
  if (taskId !== undefined && policy !== 'reject' && policy !== 'existing') {
    refuse('taskId', 'its key says which task is meant');
  }
  if (isPlainRepeat(repeat)) return;
  if (group !== '') refuse('group', 'a task of a group becomes part of another');
  if (!links) return;
  if (links.after.length > 0) refuse('after', 'a task that waits for others can only have a plain unique time');
  if (links.rememberFor > 0) refuse('rememberFor', 'a task whose end is remembered can only have a plain unique time');
}

/** @throws InvalidTaskError when the option about repeats needs a key that there is not */
export function requireRepeatKey(type: string, repeat: RepeatSettings | undefined, key: unknown): void {
  if (repeat?.by !== 'key' || key !== undefined) return;
  throw new InvalidTaskError(
    `${repeat.option} of task "${type}" needs key: give it in the call, or define the task with key, such as (payload) => payload.orderId`,
  );
}
