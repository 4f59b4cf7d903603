import type { ServerStats } from '../server/index.js';
import type { MetricDefinition } from './definition.js';
import type { Sample } from './sample.js';
import type { Reading } from './queue-reader.js';
import type { MetricsSource } from './source.js';
import type { Tally } from './tally.js';

type Describe = (name: string, help: string, labels: readonly string[]) => Omit<MetricDefinition, 'read'>;

const NONE: readonly Sample[] = [];

/** What this process does: a sum over processes is right. */
export function processMetrics(prefix: string): MetricDefinition[] {
  const metric: Describe = (name, help, labels) => ({ name: prefix + name, help, labels, ...COUNTER });
  return [...attemptMetrics(metric, prefix), ...eventCounters(metric), ...serverMetrics(metric)];
}

const COUNTER = { type: 'counter', merge: 'sum' } as const;
const GAUGE = { type: 'gauge' } as const;

function attemptMetrics(metric: Describe, prefix: string): MetricDefinition[] {
  const duration = 'task_duration_seconds';
  const wait = 'task_wait_seconds';
  const step = 'step_duration_seconds';
  return [
    {
      ...metric(duration, 'Seconds attempts took, from the call of the handler to its end.', ['queue', 'type']),
      type: 'histogram',
      read: ({ tasks }) => tasks.durations(prefix + duration),
    },
    {
      ...metric(wait, 'Seconds tasks were pending before an attempt.', ['queue', 'type']),
      type: 'histogram',
      read: ({ tasks }) => tasks.waits(prefix + wait),
    },
    {
      ...metric('task_attempts_total', 'Attempts, by the outcome of the task.', ['queue', 'type', 'outcome']),
      read: ({ tasks }) => tasks.attempts(),
    },
    {
      ...metric('steps_total', 'Steps of handlers that did something, or failed to, by outcome.', [
        'queue',
        'type',
        'outcome',
      ]),
      read: ({ tasks }) => tasks.steps(),
    },
    {
      ...metric(step, 'Seconds steps of handlers took, until what they brought was stored.', ['queue', 'type']),
      type: 'histogram',
      read: ({ tasks }) => tasks.stepDurations(prefix + step),
    },
    {
      ...metric('stuck_handlers_total', 'Handlers that still ran long after they were aborted.', ['queue', 'type']),
      read: ({ tasks }) => tasks.stuck(),
    },
  ];
}

function eventCounters(metric: Describe): MetricDefinition[] {
  const counted = (name: string, help: string, labels: readonly string[], of: (source: MetricsSource) => Tally) => ({
    ...metric(name, help, labels),
    read: (source: MetricsSource) => of(source).samples(),
  });
  return [
    counted(
      'damaged_tasks_total',
      'Tasks archived because their message cannot be decoded.',
      ['queue'],
      (s) => s.damaged,
    ),
    counted(
      'newer_payloads_total',
      'Times a task was put aside, as its payload is newer than the handler of this server.',
      ['queue'],
      (s) => s.newerPayloads,
    ),
    counted('expired_tasks_total', 'Tasks that did not begin in time.', ['queue', 'outcome'], (s) => s.expired),
    counted('recovered_tasks_total', 'Tasks recovered from lost servers.', ['queue', 'outcome'], (s) => s.recovered),
    counted('aggregations_total', 'Aggregations of groups, by outcome.', ['queue', 'outcome'], (s) => s.aggregations),
    counted('aggregated_tasks_total', 'Tasks of groups that were aggregated.', ['queue'], (s) => s.aggregatedTasks),
    counted(
      'periodic_firings_total',
      'Planned times of periodic tasks dealt with by this process.',
      ['queue', 'outcome'],
      (s) => s.firings,
    ),
    counted(
      'link_messages_total',
      'Messages between linked tasks, by outcome: carried, failed, or found late by the keeper.',
      ['outcome'],
      (s) => s.linkMessages,
    ),
    counted(
      'link_ends_found_total',
      'Ends of linked tasks, and deadlines of waits, that the keeper of this server found.',
      [],
      (s) => s.linkEnds,
    ),
    counted(
      'waits_ended_total',
      'Ends of waits of tasks for other tasks, by outcome.',
      ['queue', 'outcome'],
      (s) => s.waits,
    ),
    counted(
      'workflow_runs_total',
      'Runs of workflows that were started, and that ended, by outcome.',
      ['queue', 'outcome'],
      (s) => s.runs,
    ),
    counted('batches_ended_total', 'Batches that ended, by outcome.', ['queue', 'outcome'], (s) => s.batches),
    counted(
      'event_loop_blocked_seconds_total',
      'Seconds for which the event loop stood still, a second or longer at a time.',
      [],
      (s) => s.loopBlocked,
    ),
    counted('loop_failures_total', 'Failed passes of the loops of the server.', ['loop'], (s) => s.loopFailures),
    counted('redis_errors_total', 'Calls to Redis that failed, by their source.', ['source'], (s) => s.redisErrors),
  ];
}

const ofServer = (read: (stats: ServerStats) => Iterable<Sample>) => (source: MetricsSource) => {
  const stats = source.stats();
  return stats ? read(stats) : NONE;
};

function serverMetrics(metric: Describe): MetricDefinition[] {
  const number = (name: string, help: string, of: (stats: ServerStats) => number): MetricDefinition => ({
    ...metric(name, help, []),
    ...GAUGE,
    read: ofServer((stats) => [{ labels: {}, value: of(stats) }]),
  });
  return [
    number('server_active', '1 while the server takes tasks, 0 when it drains or is closed.', ({ status }) =>
      Number(status === 'active'),
    ),
    number('slots', 'Handlers that may run at the same time.', ({ concurrency }) => concurrency),
    number('slots_free', 'Handlers that could be started now.', ({ free }) => free),
    {
      ...metric('tasks_in_flight', 'Tasks claimed and not yet settled.', ['queue']),
      ...GAUGE,
      read: ofServer(({ inFlight }) => [...inFlight].map(([queue, value]) => ({ labels: { queue }, value }))),
    },
    {
      ...metric('loop_lag_seconds', 'Seconds by which a loop of the server is late.', ['loop']),
      ...GAUGE,
      merge: 'max',
      read: ofServer(({ loops }) =>
        loops.map(({ loop, lag, overdue }) => ({ labels: { loop }, value: Math.max(lag, overdue) / 1000 })),
      ),
    },
    {
      ...metric('event_loop_delay_seconds', 'Seconds by which the event loop was late lately.', ['quantile']),
      ...GAUGE,
      merge: 'max',
      read: ofServer(({ loopDelay: { p50, p99, max } }) =>
        Object.entries({ '0.5': p50, '0.99': p99, '1': max }).map(([quantile, value]) => ({
          labels: { quantile },
          value: value / 1000,
        })),
      ),
    },
    {
      ...metric('wakeups_total', 'Checks of an idle queue, by their reason: a wake-up of Redis, or a poll.', [
        'reason',
      ]),
      read: ofServer(({ wakeups: { notices, polls } }) => [
        { labels: { reason: 'notice' }, value: notices },
        { labels: { reason: 'poll' }, value: polls },
      ]),
    },
  ];
}

/**
 * What Redis has of the queues: the same in every process, so a maximum over processes is right.
 */
export function queueMetrics(prefix: string, topKeys: number): MetricDefinition[] {
  const gauge = (name: string, help: string, valueOf: ValueOfQueue) => queueGauge(prefix + name, help, valueOf);
  return [
    gauge('queue_pending_tasks', 'Tasks that could run now.', ({ pending }) => pending),
    gauge(
      'queue_oldest_pending_seconds',
      'Seconds the task that is next to run has been pending; of the next 20 the longest.',
      ({ latency }) => latency / 1000,
    ),
    gauge(
      'queue_held_tasks',
      'Tasks that a limit of their handler holds back, or that are too new for it.',
      ({ held }) => held,
    ),
    gauge(
      'queue_oldest_held_seconds',
      'Seconds the task that is held longest has been held.',
      ({ oldestHeld }) => oldestHeld / 1000,
    ),
    gauge('queue_aggregating_tasks', 'Tasks that wait in groups.', ({ aggregating }) => aggregating),
    gauge('queue_waiting_tasks', 'Tasks that wait for other tasks.', ({ waiting }) => waiting),
    gauge('queue_groups', 'Groups with waiting tasks.', ({ groups }) => groups),
    gauge('queue_keys', 'Keys of a fair queue that have waiting tasks.', ({ keys }) => keys?.waiting),
    gauge('queue_keys_held', 'Keys of a fair queue that a limit of their own holds back.', ({ keys }) => keys?.held),
    ...(topKeys > 0 ? [keyMetric(prefix)] : []),
    gauge(
      'queue_servers',
      'Servers of any kind that serve the queue.',
      ({ queue }, servers) => servers && (servers.get(queue) ?? 0),
    ),
    ...scrapeMetrics(prefix),
  ];
}

/** What the database has of the outbox: the same in every process, so a maximum over processes is right. */
export function outboxMetrics(prefix: string): MetricDefinition[] {
  const metric = (name: string, help: string, labels: readonly string[]) => ({
    name: `${prefix}${name}`,
    help,
    labels,
    type: 'gauge' as const,
    merge: 'max' as const,
  });
  return [
    {
      ...metric('outbox_up', '1 while the database of the outbox answers.', []),
      read: async (source) => {
        const reading = await source.outbox();
        return reading ? [{ labels: {}, value: reading.rows ? 1 : 0 }] : NONE;
      },
    },
    {
      ...metric('outbox_rows', 'Rows of the outbox that have not become tasks, by state.', ['state']),
      read: async (source) => {
        const rows = (await source.outbox())?.rows;
        if (!rows) return NONE;
        const { fresh, taken, poisoned } = rows;
        return Object.entries({ new: fresh, taken, poisoned }).map(([state, value]) => ({ labels: { state }, value }));
      },
    },
    {
      ...metric('outbox_oldest_seconds', 'Seconds the oldest row of the outbox has waited for Redis.', []),
      read: async (source) => {
        const rows = (await source.outbox())?.rows;
        return rows ? [{ labels: {}, value: rows.oldest / 1000 }] : NONE;
      },
    },
  ];
}

type ValueOfQueue = (info: Reading['queues'][number], servers: Reading['servers']) => number | undefined;

const queueGauge = (name: string, help: string, valueOf: ValueOfQueue): MetricDefinition => ({
  name,
  help,
  type: 'gauge',
  labels: ['queue'],
  merge: 'max',
  read: async (source) => {
    const { queues, servers } = await source.read();
    return queues.flatMap((info): Sample[] => {
      const value = valueOf(info, servers);
      return value === undefined ? [] : [{ labels: { queue: info.queue }, value }];
    });
  },
});

const keyMetric = (prefix: string): MetricDefinition => ({
  name: `${prefix}key_waiting_tasks`,
  help: 'Tasks that wait in the line of a key; of each fair queue the keys with the most.',
  type: 'gauge',
  labels: ['queue', 'key'],
  merge: 'max',
  read: async (source) =>
    (await source.read()).keys.map(({ queue, key, waiting }) => ({ labels: { queue, key }, value: waiting })),
});

const scrapeMetrics = (prefix: string): MetricDefinition[] => [
  {
    name: `${prefix}queues_left_out`,
    help: 'Queues that exist and are not exported, because there are more than maxQueues.',
    type: 'gauge',
    labels: [],
    merge: 'max',
    read: async (source) => [{ labels: {}, value: (await source.read()).leftOut }],
  },
  {
    name: `${prefix}scrape_errors_total`,
    help: 'Queues left out of a scrape because they could not be read; an empty queue is the list of queues or of servers.',
    type: 'counter',
    labels: ['queue'],
    merge: 'sum',
    read: async (source) => {
      await source.read();
      return source.scrapeErrors.samples();
    },
  },
];
