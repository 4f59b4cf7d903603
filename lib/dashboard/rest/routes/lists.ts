import type { TaskInfo } from '../../../task/info.js';
import type { Dashboard } from '../../dashboard.js';
import type { Call, QueryParameter, Route } from '../route.js';
import { CURSOR_PARAMETER, given, PAGE_PARAMETERS, pageOf, positive, sizeOf } from '../query.js';
import { count, listOf, orNull, ref, type Schema, shape, text } from '../schema.js';
import { showListed, workersOf } from '../shapes/listed-task.js';
import { showQueue } from '../shapes/queue.js';
import { collectionOf, placeOf, TASK_STATES, type TaskState } from '../task-states.js';
import { QUEUE_STATE } from './queues.js';

const CRITERIA = ['type', 'id', 'payload', 'error'] as const;
type Criteria = Partial<Record<(typeof CRITERIA)[number], string>>;

const SEARCH_PARAMETERS: readonly QueryParameter[] = [
  { name: 'type', description: 'how the type begins; this and the next three make it a search' },
  { name: 'id', description: 'how the id begins' },
  { name: 'payload', description: 'text in the payload; of redacted tasks, in what is shown of it' },
  { name: 'error', description: 'text in the last error; of redacted tasks, in what is shown of it' },
  { name: 'scan', description: 'entries a search looks at per call, 1 to 10,000; default 1,000', integer: true },
];

const MOST_SCANNED = 10_000;

const REPLY: Schema = shape(
  {
    tasks: listOf(ref('ListedTask')),
    damaged: listOf(ref('DamagedEntry')),
    next_cursor: orNull(text('null at the end')),
    stats: QUEUE_STATE,
    scanned: count('entries a search has looked at'),
    groups: listOf(ref('Group')),
  },
  ['scanned', 'groups'],
);

interface Found {
  readonly tasks: readonly TaskInfo[];
  readonly damaged: readonly { readonly id: string; readonly error: Error }[];
  readonly cursor: string | undefined;
  readonly scanned?: number;
}

const list = (state: TaskState) => async (dashboard: Dashboard, call: Call) => {
  const queue = call.params.queue!;
  const found = await find(dashboard, state, call);
  const servers = state === 'active' ? await dashboard.knownServers() : [];
  const workers = workersOf(servers);
  const reply = {
    tasks: found.tasks.map((task) => showListed(dashboard, task, workers)),
    damaged: found.damaged.map(({ id, error }) => ({ id, error: error.message })),
    next_cursor: found.cursor ?? null,
    stats: showQueue(await dashboard.overview.one(queue)),
    ...(found.scanned !== undefined && { scanned: found.scanned }),
  };
  return state === 'aggregating' ? { ...reply, groups: await dashboard.inspector.groups(queue) } : reply;
};

function find(dashboard: Dashboard, state: TaskState, call: Call): Promise<Found> {
  const { query, params } = call;
  const { group } = placeOf(state, call);
  const cursor = given(query, 'cursor');
  if (isSearch(call)) return search(dashboard, state, call, criteriaOf(query));
  const place = cursor === undefined ? { page: pageOf(query) } : { cursor };
  return dashboard.inspector.listTasks(params.queue!, state, { size: sizeOf(query), group, ...place });
}

const criteriaOf = (query: URLSearchParams): Criteria =>
  Object.fromEntries(CRITERIA.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : [])));

const isSearch = ({ query }: Call): boolean => CRITERIA.some((name) => given(query, name) !== undefined);

async function search(dashboard: Dashboard, state: TaskState, call: Call, criteria: Criteria): Promise<Found> {
  const { query, params } = call;
  const scan = Math.min(positive(query, 'scan') ?? 1000, MOST_SCANNED);
  const options = { ...criteria, scan, cursor: given(query, 'cursor'), group: placeOf(state, call).group };
  const found = await dashboard.inspector.searchTasks(params.queue!, state, options);
  return { ...found, tasks: found.tasks.filter((task) => maySayIt(dashboard, task, criteria)) };
}

/** Whether what was searched for can be seen, too: a search must not tell what redaction hides. */
function maySayIt({ presenter }: Dashboard, task: TaskInfo, { payload, error }: Criteria): boolean {
  if ((payload === undefined && error === undefined) || !presenter.isRedacted(task)) return true;
  const seen = presenter.present({ ...task, error: task.lastErr }, false);
  return seen.payload.includes(payload ?? '') && seen.error.includes(error ?? '');
}

export const listRoutes: readonly Route[] = TASK_STATES.map((state) => ({
  method: 'GET',
  path: collectionOf(state),
  summary: `Tasks that are ${state}, page by page`,
  query: [...PAGE_PARAMETERS, CURSOR_PARAMETER, ...SEARCH_PARAMETERS],
  reply: REPLY,
  // What a search finds can be much, and nobody else asks the same.
  cached: (call) => !isSearch(call),
  handle: list(state),
}));
