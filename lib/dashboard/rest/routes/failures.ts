import type { TaskInfo } from '../../../task/info.js';
import type { Dashboard } from '../../dashboard.js';
import { groupFailures, type FailedTask, type FailureGroup } from '../../failure-groups.js';
import type { ApiRequest, Route } from '../route.js';
import { count, listOf, orNull, ref, shape, text, time } from '../schema.js';
import { toSubject } from '../shapes/subject.js';
import { timeOrNull } from '../shapes/times.js';

/**
 * How many tasks of each state are read: recent failures are among them, and the cost is bounded.
 */
const TASKS_PER_STATE = 200;
const MAX_GROUPS = 50;

export const failureSchemas = {
  Failure: shape({
    type: text(),
    error: text('of the newest'),
    match: text('what all of their errors contain, for a search; may be empty'),
    retry: count('of the scanned tasks, those in retry'),
    archived: count('of the scanned tasks, those archived'),
    first_failed_at: orNull(time('of the scanned tasks')),
    last_failed_at: orNull(time()),
    task_id: text('the task that failed last'),
  }),
};

async function show(dashboard: Dashboard, { params }: ApiRequest) {
  const queue = params.queue!;
  await dashboard.requireQueue(queue);
  const state = await dashboard.overview.one(queue);
  if ('error' in state) throw state.error; // unknown is not the same as none
  const tasks = [...(await nextRetries(dashboard, queue)), ...(await newestArchived(dashboard, queue))];
  const failed = tasks.filter(({ lastErr }) => lastErr !== '').map((task) => toFailed(dashboard, task));
  return {
    failures: groupFailures(failed).slice(0, MAX_GROUPS).map(showGroup),
    scanned: tasks.length,
    total: state.retry + state.archived,
  };
}

const nextRetries = async ({ inspector }: Dashboard, queue: string): Promise<readonly TaskInfo[]> =>
  (await inspector.listTasks(queue, 'retry', { size: TASKS_PER_STATE })).tasks;

const newestArchived = async ({ inspector }: Dashboard, queue: string): Promise<readonly TaskInfo[]> =>
  (await inspector.listTasks(queue, 'archived', { size: TASKS_PER_STATE, newestFirst: true })).tasks;

const toFailed = ({ presenter }: Dashboard, task: TaskInfo): FailedTask => ({
  id: task.id,
  type: task.type,
  state: task.state === 'archived' ? 'archived' : 'retry',
  error: presenter.presentError(toSubject(task)),
  failedAt: task.lastFailedAt,
});

const showGroup = ({ type, error, match, retry, archived, first, last, taskId }: FailureGroup) => ({
  type,
  error,
  match,
  retry,
  archived,
  task_id: taskId,
  first_failed_at: timeOrNull(first),
  last_failed_at: timeOrNull(last),
});

export const failureRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'queues/{queue}/failures',
    summary: `What fails: the next ${TASKS_PER_STATE} retries and the newest ${TASKS_PER_STATE} archived tasks, by type and reason`,
    reply: shape({
      failures: listOf(ref('Failure')),
      scanned: count('tasks scanned'),
      total: count('tasks in both states'),
    }),
    handle: show,
  },
];
