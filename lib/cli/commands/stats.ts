import type { Command } from 'commander';
import { QueueNotFoundError } from '../../errors.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { QueueInfo } from '../../inspector/views.js';
import type { Call } from '../command-context.js';
import { addCommand, type Frame } from '../tree.js';
import { jsonOption } from '../values.js';
import { DAY_COLUMNS, STATE_COLUMNS } from './queue.js';

interface StatsFlags {
  readonly json?: boolean;
}

export function addStats(root: Command, frame: Frame): void {
  addCommand<StatsFlags>(root, frame, {
    usage: 'stats',
    summary: 'show how all queues stand, what was done today, and how Redis is',
    details:
      'With --json it answers in the shape of asynq. To look on, run it by watch(1): watch -n 3 nestjs-asynq stats',
    options: [jsonOption()],
    examples: ['stats', 'stats --json'],
    run: showStats,
  });
}

const SUMMED = [
  'active',
  'pending',
  'aggregating',
  'scheduled',
  'retry',
  'archived',
  'completed',
  'processed',
  'failed',
] as const;

type Aggregate = Record<(typeof SUMMED)[number], number> & { readonly timestamp: Date };

async function showStats(call: Call<StatsFlags>): Promise<void> {
  const inspector = await call.inspector();
  const names = (await inspector.queues()).sort();
  const queues: QueueInfo[] = [];
  await call.forEach(names, async (name) => {
    const info = await inspector.getQueueInfo(name).catch(nothingIfGone(inspector, name));
    if (info) queues.push(info);
  });
  const session = await call.session();
  const redis = parseInfo(await session.redisInfo());
  const sums = SUMMED.map((name) => [name, queues.reduce((sum, queue) => sum + queue[name], 0)]);
  const aggregate = { ...Object.fromEntries(sums), timestamp: new Date(call.now) } as Aggregate;
  if (call.options.json) return call.json({ aggregate, queues: queues.length > 0 ? queues.map(asGo) : null, redis });
  printStats(call, aggregate, queues);
  printRedis(call, redis, session.isCluster);
}

/** A queue may be removed while the others are read; one whose name is no text stays among the names. */
const nothingIfGone = (inspector: AsynqInspector, name: string) => async (error: unknown) => {
  if (error instanceof QueueNotFoundError && !(await inspector.queues()).includes(name)) return undefined;
  throw error;
};

function printStats(call: Call<StatsFlags>, aggregate: Aggregate, queues: readonly QueueInfo[]): void {
  call.heading('Tasks by state');
  call.table(STATE_COLUMNS, [aggregate]);
  call.print('');
  call.heading('Tasks by queue');
  call.table(
    [
      { title: 'queue', cell: ({ queue, paused }: QueueInfo) => (paused ? `${queue} (paused)` : queue) },
      { title: 'size', cell: ({ size }) => size },
    ],
    queues,
  );
  call.print('');
  call.heading(`Today (${aggregate.timestamp.toISOString().slice(0, 10)} UTC)`);
  call.table(DAY_COLUMNS, [aggregate]);
  call.print('');
}

type Info = Readonly<Record<string, string>>;

const REDIS_COLUMNS = [
  { title: 'version', cell: (info: Info) => info['redis_version'] ?? '' },
  { title: 'uptime', cell: (info: Info) => `${info['uptime_in_days']} days` },
  { title: 'connections', cell: (info: Info) => info['connected_clients'] ?? '' },
  { title: 'memory usage', cell: (info: Info) => `${info['used_memory_human']}B` },
  { title: 'peak memory usage', cell: (info: Info) => `${info['used_memory_peak_human']}B` },
];

const CLUSTER_COLUMNS = [
  { title: 'state', cell: (info: Info) => info['cluster_state'] ?? '' },
  { title: 'known nodes', cell: (info: Info) => info['cluster_known_nodes'] ?? '' },
  { title: 'size', cell: (info: Info) => info['cluster_size'] ?? '' },
];

function printRedis(call: Call<StatsFlags>, info: Info, isCluster: boolean): void {
  call.heading(isCluster ? 'Redis Cluster' : 'Redis');
  call.table(isCluster ? CLUSTER_COLUMNS : REDIS_COLUMNS, [info]);
}

/** Lines with exactly one colon, as asynq takes them: names and values, not headings. */
export function parseInfo(text: string): Info {
  const pairs = text.split('\r\n').map((line) => line.split(':'));
  return Object.fromEntries(pairs.filter((pair) => pair.length === 2));
}

/** By the names and units of Go's QueueInfo: the latency in nanoseconds. */
const asGo = (info: QueueInfo): object => ({
  Queue: info.queue,
  MemoryUsage: info.memoryUsage,
  Latency: info.latency * 1e6,
  Size: info.size,
  Groups: info.groups,
  Pending: info.pending,
  Active: info.active,
  Scheduled: info.scheduled,
  Retry: info.retry,
  Archived: info.archived,
  Completed: info.completed,
  Aggregating: info.aggregating,
  Processed: info.processed,
  Failed: info.failed,
  ProcessedTotal: info.processedTotal,
  FailedTotal: info.failedTotal,
  Paused: info.paused,
  Timestamp: info.timestamp,
});
