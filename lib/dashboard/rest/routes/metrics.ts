import { floorSeconds } from '../../../clock.js';
import type { Dashboard } from '../../dashboard.js';
import { ApiError } from '../api-error.js';
import { askPrometheus, QUERIES, type Range, stepOf } from '../prometheus.js';
import type { ApiRequest, Route } from '../route.js';
import { anything, shape } from '../schema.js';

const MAX_DURATION_SECONDS = 5 * 366 * 86_400;
/** Prometheus' own limit. */
const MAX_POINTS = 11_000;

async function metrics(dashboard: Dashboard, { query, permissions }: ApiRequest) {
  const { prometheus } = dashboard.settings;
  const remedy = "set the dashboard's option prometheus to its address";
  if (prometheus === undefined) throw new ApiError('NOT_FOUND', `this console has no Prometheus; ${remedy}`);
  const range = readRange(query, floorSeconds(dashboard.now));
  if (permissions.mayEverywhere('view')) return askPrometheus(prometheus, range);
  const known = range.queues?.length ? range.queues : await dashboard.broker.inspection.queues();
  const queues = known.filter((queue) => permissions.maySee(queue));
  return askPrometheus(prometheus, { ...range, queues: queues.length > 0 ? queues.sort() : undefined });
}

function readRange(query: URLSearchParams, now: number): Range {
  const duration = durationOf(query);
  const end = endOf(query) ?? now;
  const points = pointsOf(query);
  const step = Math.max(stepOf(duration), points === undefined ? 0 : Math.ceil(duration / points));
  return { start: end - duration, end, step, queues: queuesOf(query) };
}

const durationOf = (query: URLSearchParams): number => seconds(query, 'duration', MAX_DURATION_SECONDS) ?? 3600;

/**
 * The shortest step between two values. Later times are rounded to it, so that requests can share a
 * reply.
 */
const MIN_STEP_SECONDS = 10;

function endOf(query: URLSearchParams): number | undefined {
  const end = seconds(query, 'endtime', Number.MAX_SAFE_INTEGER);
  return end === undefined ? undefined : Math.max(1, end - (end % MIN_STEP_SECONDS));
}

/** A chart needs fewer values than asynqmon requests. */
const pointsOf = (query: URLSearchParams): number | undefined => seconds(query, 'points', MAX_POINTS, 'values');

/** One name as it is, or names separated by commas. */
function queuesOf(query: URLSearchParams): string[] {
  const queue = query.get('queue');
  if (queue) return [queue];
  return [...new Set((query.get('queues') ?? '').split(',').filter(Boolean))].sort();
}

function seconds(query: URLSearchParams, name: string, most: number, unit = 'seconds'): number | undefined {
  const given = query.get(name);
  if (given === null || given === '') return undefined;
  const value = /^\d{1,16}$/.test(given) ? Number(given) : NaN;
  if (value >= 1 && value <= most) return value;
  throw new ApiError('BAD_REQUEST', `${name} must be a whole number of ${unit} from 1 to ${most}`);
}

export const metricsRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'metrics',
    summary: 'The history of queues, from Prometheus',
    scope: 'filtered',
    query: [
      { name: 'duration', description: 'seconds; default 3600', integer: true, canonical: durationOf },
      {
        name: 'endtime',
        description: 'Unix seconds, of which tens count; default now',
        integer: true,
        canonical: endOf,
      },
      {
        name: 'queues',
        description: 'names separated by commas; default all',
        canonical: (query) => (query.get('queue') ? undefined : queuesOf(query).join(',') || undefined),
      },
      { name: 'queue', description: 'one name, whatever is in it; in place of queues' },
      {
        name: 'points',
        description: 'values of a line at most; default as asynqmon asks',
        integer: true,
        canonical: pointsOf,
      },
    ],
    reply: shape(Object.fromEntries(Object.keys(QUERIES).map((name) => [name, anything("Prometheus' response")]))),
    handle: metrics,
  },
];
