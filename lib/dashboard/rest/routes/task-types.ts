import { fleetOf } from '../../../inspector/explain/fleet.js';
import type { TaskInfo } from '../../../task/info.js';
import type { Dashboard } from '../../dashboard.js';
import type { ApiRequest, Route } from '../route.js';
import { count, flag, listOf, orNull, ref, shape, text } from '../schema.js';
import type { TaskState } from '../list-paths.js';

/** How many tasks of each state are read, so that the cost is bounded. */
const TASKS_PER_STATE = 30;
/** A server may have a handler per customer; a form suggests no more than this. */
const MAX_TYPES = 200;

/** Where the tasks are that can be read by their time or place, the most telling first: the first task of a type is its example. */
const STATES: readonly TaskState[] = ['completed', 'active', 'pending', 'archived', 'retry', 'scheduled'];
const UNORDERED: ReadonlySet<TaskState> = new Set(['pending', 'active']);

export const taskTypeSchemas = {
  TaskType: shape({
    type: text('of tasks; or how types begin, if a handler takes all of these'),
    handled: flag(
      'whether a running server of the queue has a handler of just this; Go servers do not say what they have',
    ),
    task_id: orNull(text('a task of the type, as an example; null: none was among those that were read')),
  }),
};

interface KnownType {
  handled: boolean;
  taskId: string | null;
}

async function show(dashboard: Dashboard, { params }: ApiRequest) {
  const queue = params.queue!;
  const [patterns, tasks] = await Promise.all([handled(dashboard, queue), recent(dashboard, queue)]);
  const known = new Map<string, KnownType>(patterns.map((type) => [type, { handled: true, taskId: null }]));
  for (const { type, id } of tasks) {
    const before = known.get(type);
    if (before?.taskId === undefined || before.taskId === null) {
      known.set(type, { handled: before?.handled ?? false, taskId: id });
    }
  }
  const types = [...known].map(([type, { handled, taskId }]) => ({ type, handled, task_id: taskId }));
  return { types: types.toSorted(byName).slice(0, MAX_TYPES), scanned: tasks.length };
}

const byName = (one: { type: string }, other: { type: string }): number => (one.type < other.type ? -1 : 1);

/** What the running servers of the queue have handlers for. */
async function handled({ broker }: Dashboard, queue: string): Promise<string[]> {
  const { serving } = fleetOf(await broker.obstacles.observeServers(), queue);
  return serving.flatMap(({ profile }) => profile?.handlers.map(({ pattern }) => pattern) ?? []);
}

/** A queue that has had no task yet has none. */
async function recent({ inspector }: Dashboard, queue: string): Promise<readonly TaskInfo[]> {
  if (!(await inspector.hasQueue(queue))) return [];
  const lists = STATES.map((state) =>
    inspector.listTasks(queue, state, { size: TASKS_PER_STATE, ...(!UNORDERED.has(state) && { newestFirst: true }) }),
  );
  return (await Promise.all(lists)).flatMap(({ tasks }) => tasks);
}

export const taskTypeRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'queues/{queue}/task_types',
    summary: `The types of the queue: those that servers have handlers for, and those of ${TASKS_PER_STATE} tasks of each state`,
    reply: shape({ types: listOf(ref('TaskType')), scanned: count('tasks read') }),
    handle: show,
  },
];
