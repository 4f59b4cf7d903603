import { mapConcurrent } from '../../../async.js';
import { BrokerUnavailableError, InvalidOptionError, QueueNotFoundError, WrongKeyTypeError } from '../../../errors.js';
import type { DailyStats } from '../../../inspector/views.js';
import type { Dashboard } from '../../dashboard.js';
import { positive } from '../query.js';
import type { ApiRequest, Route } from '../route.js';
import { listOf, mapOf, ref, type Schema, shape } from '../schema.js';
import { showDay, showQueue } from '../shapes/queue.js';

/** Days of `/queues/{queue}` and of `/queue_stats`, as in asynqmon. */
const RECENT_DAYS = 10;
const KEPT_DAYS = 90;
const QUEUES_AT_ONCE = 8;

/** The state of a queue within another reply. */
export const QUEUE_STATE: Schema = { anyOf: [ref('Queue'), ref('UnreadableQueue')] };

const list = async ({ overview }: Dashboard, { permissions }: ApiRequest) => ({
  queues: (await overview.all()).filter(({ queue }) => permissions.maySee(queue)).map(showQueue),
});

const daysOf = (query: URLSearchParams): number => Math.min(positive(query, 'days') ?? RECENT_DAYS, KEPT_DAYS);

async function show(dashboard: Dashboard, { params, query }: ApiRequest) {
  const queue = params.queue!;
  await dashboard.requireQueue(queue);
  const current = await dashboard.overview.one(queue);
  const history = await dashboard.inspector.history(queue, daysOf(query)).catch(nothingOfUnreadable);
  return { current: showQueue(current), history: history.map(showDay) };
}

async function stats(dashboard: Dashboard, { permissions }: ApiRequest) {
  const names = (await dashboard.inspector.queues()).filter((queue) => permissions.maySee(queue)).sort();
  const away: BrokerUnavailableError[] = [];
  const nothingOfAway = (error: unknown): DailyStats[] => {
    if (!(error instanceof BrokerUnavailableError)) return nothingOfUnreadable(error);
    away.push(error);
    return [];
  };
  const days = await mapConcurrent(names, QUEUES_AT_ONCE, (queue) =>
    dashboard.inspector.history(queue, KEPT_DAYS).catch(nothingOfAway),
  );
  if (away.length > 0 && away.length === names.length) throw away[0]!;
  return { stats: Object.fromEntries(names.map((name, index) => [name, days[index]!.map(showDay)])) };
}

/** A queue that cannot be read has no history. */
function nothingOfUnreadable(error: unknown): DailyStats[] {
  // A blank name, written by another client, is refused by the inspector.
  const unreadable = [WrongKeyTypeError, QueueNotFoundError, InvalidOptionError];
  if (unreadable.some((kind) => error instanceof kind)) return [];
  throw error;
}

async function remove({ inspector }: Dashboard, { params, query }: ApiRequest): Promise<void> {
  await inspector.deleteQueue(params.queue!, { force: query.get('force') === 'true' });
}

/** asynq also pauses unknown queues; here the name is probably mistyped. */
async function pause(dashboard: Dashboard, { params }: ApiRequest): Promise<void> {
  await dashboard.requireQueue(params.queue!);
  await dashboard.inspector.pauseQueue(params.queue!);
}

async function resume(dashboard: Dashboard, { params }: ApiRequest): Promise<void> {
  await dashboard.requireQueue(params.queue!);
  await dashboard.inspector.unpauseQueue(params.queue!);
}

const groups = async ({ inspector, overview }: Dashboard, { params }: ApiRequest) => ({
  groups: await inspector.groups(params.queue!),
  stats: showQueue(await overview.one(params.queue!)),
});

export const queueRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'queues',
    summary: 'The state of all queues',
    scope: 'filtered',
    reply: shape({ queues: listOf(QUEUE_STATE) }),
    handle: list,
  },
  {
    method: 'GET',
    path: 'queues/{queue}',
    summary: `The state of a queue, and its last ${RECENT_DAYS} days`,
    query: [
      {
        name: 'days',
        description: `days of its history, 1 to ${KEPT_DAYS}; default ${RECENT_DAYS}`,
        integer: true,
        canonical: daysOf,
      },
    ],
    reply: shape({ current: QUEUE_STATE, history: listOf(ref('Daily')) }),
    handle: show,
  },
  {
    method: 'DELETE',
    path: 'queues/{queue}',
    summary: 'Delete a queue',
    query: [{ name: 'force', description: '`true`: with the tasks in it; never with active ones' }],
    handle: remove,
  },
  { method: 'POST', path: 'queues/{queue}:pause', summary: 'Pause a queue: no server claims its tasks', handle: pause },
  { method: 'POST', path: 'queues/{queue}:resume', summary: 'Resume a queue', handle: resume },
  {
    method: 'GET',
    path: 'queues/{queue}/groups',
    summary: 'Groups that have waiting tasks',
    reply: shape({ groups: listOf(ref('Group')), stats: QUEUE_STATE }),
    handle: groups,
  },
  {
    method: 'GET',
    path: 'queue_stats',
    summary: `The last ${KEPT_DAYS} days of all queues`,
    scope: 'filtered',
    reply: shape({ stats: mapOf(listOf(ref('Daily'))) }),
    handle: stats,
  },
];
