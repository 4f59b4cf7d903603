import { mapInTurns } from '../../../async.js';
import type { TaskList } from '../../../inspector/views.js';
import type { Dashboard } from '../../dashboard.js';
import { listPathOf, listScopeOf, TASK_STATES, type TaskState } from '../list-paths.js';
import { BadRequest } from '../api-error.js';
import { CURSOR_PARAMETERS, given, ORDER_PARAMETER, orderOf, pageOf, sizeOf } from '../query.js';
import type { ApiRequest, QueryParameter, Route } from '../route.js';
import { count, listOf, orNull, ref, type Schema, shape, text } from '../schema.js';
import { CRITERIA_PARAMETERS, hasCriteria } from '../criteria.js';
import { SCAN_PARAMETER } from '../scan.js';
import { search, showDamaged } from '../search.js';
import { showListed, type Workers, workersOf } from '../shapes/listed-task.js';
import { showQueue } from '../shapes/queue.js';
import { hidesKeys } from './keys.js';
import { QUEUE_STATE } from './queues.js';

const SEARCH_PARAMETERS: readonly QueryParameter[] = [
  ...CRITERIA_PARAMETERS.map((parameter, index) =>
    index === 0
      ? { ...parameter, description: `${parameter.description}; this and the next five make it a search` }
      : parameter,
  ),
  {
    ...SCAN_PARAMETER,
    description: `${SCAN_PARAMETER.description}, or found 1,000 tasks or 2 MB`,
    canonical: (query) => (hasCriteria(query) ? SCAN_PARAMETER.canonical!(query) : undefined),
  },
];

const REPLY: Schema = shape(
  {
    tasks: listOf(ref('ListedTask')),
    damaged: listOf(ref('DamagedEntry')),
    next_cursor: orNull(text('null at the end')),
    stats: QUEUE_STATE,
    scanned: count('entries a search has scanned'),
    groups: listOf(ref('Group')),
  },
  ['scanned', 'groups'],
);

/** Only of pending tasks. */
const KEY_PARAMETER: QueryParameter = {
  name: 'key',
  description: 'only tasks of this key of a fair queue; not in a search, and not with `page`',
};

function keyOf(dashboard: Dashboard, { query, params }: ApiRequest): string | undefined {
  const key = given(query, 'key');
  if (key === undefined) return undefined;
  if (hasCriteria(query)) throw new BadRequest('key is not for a search; give one of both');
  if (hidesKeys(dashboard, params.queue!)) throw new BadRequest('the keys of this queue are hidden');
  return key;
}

const list = (state: TaskState) => async (dashboard: Dashboard, request: ApiRequest) => {
  const queue = request.params.queue!;
  const servers = state === 'active' ? await dashboard.knownServers() : [];
  const workers = workersOf(servers);
  const key = state === 'pending' ? keyOf(dashboard, request) : undefined;
  const found = hasCriteria(request.query)
    ? await search(dashboard, state, request, workers)
    : await showPage(dashboard, await read(dashboard, state, request, key), workers);
  const reply = { ...found, stats: showQueue(await dashboard.overview.one(queue)) };
  return state === 'aggregating' ? { ...reply, groups: await dashboard.inspector.groups(queue) } : reply;
};

function read(dashboard: Dashboard, state: TaskState, request: ApiRequest, fairnessKey?: string): Promise<TaskList> {
  const { query, params } = request;
  const { group } = listScopeOf(state, request);
  const cursor = given(query, 'cursor');
  const page = fairnessKey === undefined ? { page: pageOf(query) } : { fairnessKey };
  const from = cursor === undefined ? page : { fairnessKey, cursor };
  const options = { size: sizeOf(query), group, ...from, ...orderOf(query) };
  return dashboard.inspector.listTasks(params.queue!, state, options);
}

const showPage = async (dashboard: Dashboard, { tasks, damaged, cursor }: TaskList, workers: Workers) => ({
  tasks: await mapInTurns(tasks, (task) => showListed(dashboard, task, workers)),
  damaged: damaged.map(showDamaged),
  next_cursor: cursor ?? null,
});

export const listRoutes: readonly Route[] = TASK_STATES.map((state) => ({
  method: 'GET',
  path: listPathOf(state),
  summary: `The ${state} tasks, page by page`,
  query: [...CURSOR_PARAMETERS, ORDER_PARAMETER, ...(state === 'pending' ? [KEY_PARAMETER] : []), ...SEARCH_PARAMETERS],
  reply: REPLY,
  // Search results can be large and are rarely requested twice.
  cached: (request) => !hasCriteria(request.query),
  handle: list(state),
}));
