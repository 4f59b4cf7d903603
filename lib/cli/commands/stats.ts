import type { Command } from 'commander';
import { serverVersion } from '../../broker/operations.js';
import { QueueNotFoundError } from '../../errors.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { QueueInfo } from '../../inspector/views.js';
import type { CommandContext } from '../tree/command-context.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { jsonOption } from '../tree/values.js';
import { COUNTED_STATES, DAY_COLUMNS, STATE_COLUMNS } from './queue.js';

interface StatsFlags {
  readonly json?: boolean;
}

export function addStats(root: Command, invocation: Invocation): void {
  addCommand<StatsFlags>(root, invocation, {
    usage: 'stats',
    summary: 'show all queues, the figures of today, and Redis',
    details: 'With --json the output has the form of asynq. To watch it, use watch(1): watch -n 3 nestjs-asynq stats',
    options: [jsonOption()],
    examples: ['stats', 'stats --json'],
    run: showStats,
  });
}

const SUMMED = [...COUNTED_STATES, 'processed', 'failed'] as const;

type Aggregate = Record<(typeof SUMMED)[number], number> & { readonly timestamp: Date };

async function showStats(context: CommandContext<StatsFlags>): Promise<void> {
  const inspector = await context.inspector();
  const names = (await inspector.queues()).sort();
  const queues: QueueInfo[] = [];
  await context.forEach(names, async (name) => {
    const info = await inspector.getQueueInfo(name).catch(nothingIfGone(inspector, name));
    if (info) queues.push(info);
  });
  const session = await context.session();
  const redis = parseInfo(await session.redisInfo());
  const sums = SUMMED.map((name) => [name, queues.reduce((sum, queue) => sum + queue[name], 0)]);
  const aggregate = { ...Object.fromEntries(sums), timestamp: new Date(context.now) } as Aggregate;
  if (context.options.json)
    return context.json({
      aggregate: withoutOurs(aggregate),
      queues: queues.length > 0 ? queues.map(asGo) : null,
      redis,
    });
  printStats(context, aggregate, queues);
  printRedis(context, redis, session.isCluster);
}

/** A queue may be removed while the others are read. A name that is not text is reported: it stays in the list. */
const nothingIfGone = (inspector: AsynqInspector, name: string) => async (error: unknown) => {
  if (error instanceof QueueNotFoundError && !(await inspector.queues()).includes(name)) return undefined;
  throw error;
};

function printStats(context: CommandContext<StatsFlags>, aggregate: Aggregate, queues: readonly QueueInfo[]): void {
  context.heading('Tasks by state');
  context.table(STATE_COLUMNS, [aggregate]);
  context.print('');
  context.heading('Tasks by queue');
  context.table(
    [
      { title: 'queue', cell: ({ queue, paused }: QueueInfo) => (paused ? `${queue} (paused)` : queue) },
      { title: 'size', cell: ({ size }) => size },
    ],
    queues,
  );
  context.print('');
  context.heading(`Today (${aggregate.timestamp.toISOString().slice(0, 10)} UTC)`);
  context.table(DAY_COLUMNS, [aggregate]);
  context.print('');
}

type Info = Readonly<Record<string, string>>;

const REDIS_COLUMNS = [
  { title: 'version', cell: (info: Info) => serverVersion(info) ?? '' },
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

function printRedis(context: CommandContext<StatsFlags>, info: Info, isCluster: boolean): void {
  context.heading(isCluster ? 'Redis Cluster' : 'Redis');
  context.table(isCluster ? CLUSTER_COLUMNS : REDIS_COLUMNS, [info]);
}

/** Parses lines with exactly one colon, as asynq does; headings have none. */
export function parseInfo(text: string): Info {
  const pairs = text.split('\r\n').map((line) => line.split(':'));
  return Object.fromEntries(pairs.filter((pair) => pair.length === 2));
}

/** Held tasks are retries for Go. */
const withoutOurs = ({ waiting: _ours, held, ...aggregate }: Aggregate): object => ({
  ...aggregate,
  retry: aggregate.retry + held,
});

/** With the names and units of Go's QueueInfo: the latency in nanoseconds. */
const asGo = (info: QueueInfo): object => ({
  Queue: info.queue,
  MemoryUsage: info.memoryUsage,
  Latency: info.latency * 1e6,
  Size: info.size,
  Groups: info.groups,
  Pending: info.pending,
  Active: info.active,
  Scheduled: info.scheduled,
  Retry: info.retry + info.held,
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
