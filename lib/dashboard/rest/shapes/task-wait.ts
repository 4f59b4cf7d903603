import type { WaitedFor } from '../../../inspector/waits.js';
import { FAILURE_POLICIES, TIMEOUT_POLICIES } from '../../../task/links.js';
import type { TaskInfo } from '../../../task/info.js';
import type { Dashboard } from '../../dashboard.js';
import { flag, listOf, oneOf, orNull, type Schema, shape, text, time } from '../schema.js';
import { timeOrNull } from './times.js';

const PREREQUISITE: Schema = shape({
  queue: orNull(text('of the task that is waited for; null when it is known by its type and key')),
  id: orNull(text('the same')),
  type: orNull(text('of the task that is waited for; null when it is known by its queue and id')),
  key: orNull(text('the same; null also when the payload of this task is hidden, of which it may be a part')),
  state: oneOf(['waiting', 'succeeded', 'failed']),
  reason: text('why it failed; empty if it has not; redacted where the errors of any tasks are'),
  paused: flag('it is a task that has not ended, in a queue that is paused'),
});

export const waitSchemas = {
  TaskWait: shape({
    prerequisites: listOf(PREREQUISITE),
    on_failure: oneOf(FAILURE_POLICIES, 'what the task does when one of them fails'),
    on_timeout: oneOf(TIMEOUT_POLICIES, 'what it does at the end of its wait'),
    until: orNull(time('the end of its wait; null when it does not wait any more')),
    cancelled: flag('it is archived because one of them failed, and revived when that one succeeds after all'),
  }),
};

/** What a task waits for, or was cancelled for; null for all others. */
export async function showWait(dashboard: Dashboard, task: TaskInfo, isHidden: boolean) {
  if (task.state !== 'waiting' && task.state !== 'archived') return null;
  const wait = await dashboard.inspector.waits(task.queue, task.id);
  if (!wait || (task.state === 'archived' && !wait.cancelled)) return null;
  return {
    prerequisites: wait.prerequisites.map((one) => showPrerequisite(dashboard, one, isHidden)),
    on_failure: wait.onFailure,
    on_timeout: wait.onTimeout,
    until: timeOrNull(wait.until),
    cancelled: wait.cancelled,
  };
}

function showPrerequisite(
  { presenter }: Dashboard,
  { prerequisite, state, reason = '', paused }: WaitedFor,
  isHidden: boolean,
) {
  const seen = { state, reason: presenter.presentReason(reason), paused };
  const shown = { queue: null, id: null, type: null, key: null, ...seen };
  if ('id' in prerequisite) return { ...shown, ...prerequisite };
  return { ...shown, type: prerequisite.type, key: isHidden ? null : prerequisite.key };
}
