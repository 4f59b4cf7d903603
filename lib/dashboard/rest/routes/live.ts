import type { Dashboard } from '../../dashboard.js';
import type { Permissions } from '../../permissions.js';
import { positive } from '../query.js';
import type { ApiRequest, Route } from '../route.js';
import { amount, count, listOf, mapOf, ref, shape, time } from '../schema.js';
import { showQueue } from '../shapes/queue.js';
import { goTime } from '../shapes/times.js';
import { QUEUE_STATE } from './queues.js';

export const liveSchemas = {
  Sample: shape({ t: time(), queues: mapOf(ref('QueueSample')) }),
  QueueSample: shape({
    pending: count(),
    active: count(),
    scheduled: count(),
    retry: count(),
    archived: count(),
    completed: count(),
    aggregating: count(),
    waiting: count(),
    held: count(),
    processed_total: count(),
    failed_total: count(),
    latency_ms: amount(),
  }),
};

async function live({ sampler, overview, settings, now }: Dashboard, { query, permissions }: ApiRequest) {
  const sees = ({ queue }: { queue: string }): boolean => permissions.maySee(queue);
  const since = positive(query, 'since') ?? 0;
  const samples = await sampler.after(since);
  return {
    now: goTime(new Date(now)),
    sequence: samples.at(-1)?.at ?? since,
    interval_ms: settings.refresh,
    queues: (await overview.all()).filter(sees).map(showQueue),
    samples: samples.map(({ at, queues }) => ({ t: goTime(new Date(at)), queues: visibleOf(queues, permissions) })),
  };
}

/** Without hidden queues nothing is copied. */
function visibleOf<T>(queues: Readonly<Record<string, T>>, permissions: Permissions): Readonly<Record<string, T>> {
  if (permissions.mayEverywhere('view')) return queues;
  return Object.fromEntries(Object.entries(queues).filter(([queue]) => permissions.maySee(queue)));
}

export const liveRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'live',
    summary: 'The state of all queues, and samples of the last 15 minutes',
    cached: false,
    scope: 'filtered',
    query: [
      {
        name: 'since',
        description: 'the `sequence` of the previous reply: returns only later samples',
        integer: true,
        canonical: (query) => positive(query, 'since'),
      },
    ],
    reply: shape({
      now: time(),
      sequence: count(),
      interval_ms: amount(),
      queues: listOf(QUEUE_STATE),
      samples: listOf(ref('Sample')),
    }),
    handle: live,
  },
];
