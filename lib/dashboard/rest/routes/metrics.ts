import { floorSeconds } from '../../../clock.js';
import type { Dashboard } from '../../dashboard.js';
import { ApiError } from '../api-error.js';
import { askPrometheus, QUERIES, type Range, stepOf } from '../prometheus.js';
import type { Call, Route } from '../route.js';
import { anything, shape } from '../schema.js';

const LONGEST = 5 * 366 * 86_400;

async function metrics(dashboard: Dashboard, { query, permissions }: Call) {
  const { prometheus } = dashboard.settings;
  const remedy = "give its address as the dashboard's option prometheus";
  if (prometheus === undefined) throw new ApiError('NOT_FOUND', `there is no Prometheus to ask; ${remedy}`);
  const range = readRange(query, floorSeconds(dashboard.now));
  if (permissions.mayEverywhere('view')) return askPrometheus(prometheus, range);
  const known = range.queues?.length ? range.queues : await dashboard.broker.queues();
  const queues = known.filter((queue) => permissions.maySee(queue));
  return askPrometheus(prometheus, { ...range, queues: queues.length > 0 ? queues.sort() : undefined });
}

function readRange(query: URLSearchParams, now: number): Range {
  const duration = seconds(query, 'duration', 3600, LONGEST);
  const end = seconds(query, 'endtime', now, Number.MAX_SAFE_INTEGER);
  const queues = (query.get('queues') ?? '').split(',').filter(Boolean);
  return { start: end - duration, end, step: stepOf(duration), queues };
}

function seconds(query: URLSearchParams, name: string, otherwise: number, most: number): number {
  const given = query.get(name);
  if (given === null || given === '') return otherwise;
  const value = /^\d{1,16}$/.test(given) ? Number(given) : NaN;
  if (value >= 1 && value <= most) return value;
  throw new ApiError('BAD_REQUEST', `${name} must be a whole number of seconds from 1 to ${most}`);
}

export const metricsRoutes: readonly Route[] = [
  {
    ...{ method: 'GET', path: 'metrics', summary: 'The history of queues, from Prometheus' },
    scope: 'filtered',
    query: [
      { name: 'duration', description: 'seconds; default 3600', integer: true },
      { name: 'endtime', description: 'Unix seconds; default now', integer: true },
      { name: 'queues', description: 'names, parted by commas; default all' },
    ],
    reply: shape(Object.fromEntries(Object.keys(QUERIES).map((name) => [name, anything("Prometheus' answer")]))),
    handle: metrics,
  },
];
