import type { WaitedFor } from '../../../inspector/waits.js';
import { FAILURE_POLICIES, TIMEOUT_POLICIES } from '../../../task/links.js';
import type { TaskDetails, TaskInfo } from '../../../task/info.js';
import type { Dashboard } from '../../dashboard.js';
import { flag, listOf, oneOf, orNull, type Schema, shape, text, time } from '../schema.js';
import { toSubject } from './listed-task.js';
import { timeOrNull } from './times.js';

const PREREQUISITE: Schema = shape({
  queue: orNull(text('of the task that is waited for; null when it is known by its type and key')),
  id: orNull(text('the same')),
  type: orNull(text('of the task that is waited for; null when it is known by its queue and id')),
  key: orNull(text('the same; null also when the payload of this task is hidden, of which it may be a part')),
  state: oneOf(['waiting', 'succeeded', 'failed']),
  reason: text('why it failed; empty if it has not'),
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
    prerequisites: wait.prerequisites.map((one) => showPrerequisite(dashboard, task, one, isHidden)),
    on_failure: wait.onFailure,
    on_timeout: wait.onTimeout,
    until: timeOrNull(wait.until),
    cancelled: wait.cancelled,
  };
}

function showPrerequisite(dashboard: Dashboard, task: TaskInfo, one: WaitedFor, isHidden: boolean) {
  const { prerequisite, state, reason = '' } = one;
  const shown = { queue: null, id: null, type: null, key: null, state };
  if ('id' in prerequisite) return { ...shown, ...prerequisite, reason: visible(dashboard, task, reason) };
  const { type, key } = prerequisite;
  const seen = visible(dashboard, task, visible(dashboard, { ...task, type }, reason));
  return { ...shown, type, key: isHidden ? null : key, reason: seen };
}

/** The reason is the error of another task: what the rules hide of it is hidden here, too. */
const visible = ({ presenter }: Dashboard, task: TaskDetails, reason: string): string =>
  reason === '' ? '' : presenter.present({ ...toSubject(task), error: reason }).error;
