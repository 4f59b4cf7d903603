import { decodeOccurrence, type FleetOccurrence } from '../../../event-streams/fleet-event.js';
import type { Dashboard } from '../../dashboard.js';
import { given } from '../query.js';
import type { ApiRequest, Route } from '../route.js';
import { amount, count, listOf, orNull, ref, shape, text, time } from '../schema.js';
import { timeOrNull } from '../shapes/times.js';

/** How many entries of the event stream are read: the newest. */
const ENTRIES = 2_000;
/** The slowest are returned. */
const MAX_TYPES = 200;

/** Their durations are not those of a handler that came to its end; metrics leave them out, too. */
const LEFT_OUT: ReadonlySet<unknown> = new Set(['requeued', 'lost']);
const FAILED: ReadonlySet<unknown> = new Set(['retry', 'archived']);

export const durationSchemas = {
  TypeDurations: shape({
    type: text(),
    queue: text(),
    attempts: count(),
    failed: count('of them, those that were retried or archived'),
    p50_ms: amount('half of them took no longer'),
    p95_ms: amount('95 of 100 took no longer'),
    longest_ms: amount(),
  }),
};

interface Attempt extends FleetOccurrence {
  readonly duration: number;
}

const isAttempt = (one: FleetOccurrence | undefined): one is Attempt =>
  one !== undefined && one.names.includes('finished') && Number.isFinite(one.duration) && !LEFT_OUT.has(one.outcome);

async function show({ broker }: Dashboard, { query, permissions }: ApiRequest) {
  const queue = given(query, 'queue');
  const entries = await broker.events.readEventsBack('events', undefined, ENTRIES);
  const attempts = entries
    .map(decodeOccurrence)
    .filter(isAttempt)
    .filter(({ task }) => permissions.maySee(task.queue) && (queue === undefined || queue === task.queue));
  const byType = new Map<string, Attempt[]>();
  for (const attempt of attempts) {
    const key = JSON.stringify([attempt.task.queue, attempt.task.type]);
    const known = byType.get(key);
    if (known) known.push(attempt);
    else byType.set(key, [attempt]);
  }
  return {
    types: [...byType.values()].map(showType).toSorted(slowestFirst).slice(0, MAX_TYPES),
    attempts: attempts.length,
    from: timeOrNull(attempts.at(-1)?.at),
    to: timeOrNull(attempts[0]?.at),
  };
}

function showType(attempts: readonly Attempt[]) {
  const { queue, type } = attempts[0]!.task;
  const sorted = attempts.map(({ duration }) => duration).toSorted((one, other) => one - other);
  const rank = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1]!;
  const failed = attempts.filter(({ outcome }) => FAILED.has(outcome)).length;
  return { type, queue, attempts: sorted.length, failed, p50_ms: rank(0.5), p95_ms: rank(0.95), longest_ms: rank(1) };
}

const slowestFirst = (one: { p95_ms: number }, other: { p95_ms: number }): number => other.p95_ms - one.p95_ms;

export const durationRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'durations',
    summary: `How long handlers take, by type: of the finished attempts among the last ${ENTRIES.toLocaleString('en')} entries of the event stream`,
    scope: 'filtered',
    query: [{ name: 'queue', description: 'only of this queue' }],
    reply: shape({
      types: listOf(ref('TypeDurations')),
      attempts: count('how many are known'),
      from: orNull(time('when the first of them ended; null: none is known')),
      to: orNull(time('when the last of them ended')),
    }),
    handle: show,
  },
];
