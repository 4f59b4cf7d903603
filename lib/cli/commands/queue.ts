import { Option } from 'commander';
import type { Command } from 'commander';
import type { CommandContext } from '../tree/command-context.js';
import { confirm } from '../tree/confirm.js';
import { suggestQueue } from '../tree/known-names.js';
import { withProgress } from '../output/progress.js';
import { plain } from '../output/text.js';
import { addCommand, addGroup, type Invocation } from '../tree/tree.js';
import { jsonOption, positive, yesOption } from '../tree/values.js';
import { formatDuration } from '../../words/when.js';
import { countTasks, errorRate } from '../output/words.js';
import { formatBytes } from '../../words/bytes.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { DailyStats, QueueInfo } from '../../inspector/views.js';
import type { TaskState } from '../../wire/states.js';
import { addQueueKeys } from './queue-keys.js';

interface Json {
  readonly json?: boolean;
}

interface RemoveFlags {
  readonly force?: boolean;
  readonly yes?: boolean;
}

export function addQueueCommands(root: Command, invocation: Invocation): void {
  const group = addGroup(root, 'queue', 'manage queues');
  const json = [jsonOption()];
  addCommand<Json>(group, invocation, {
    usage: 'list',
    aliases: ['ls'],
    summary: 'list the queues, in a cluster with key slot and nodes',
    options: json,
    examples: ['queue list', 'queue list --cluster --cluster_addrs 10.0.0.1:7000'],
    run: listQueues,
  });
  addCommand<Json>(group, invocation, {
    usage: 'inspect <queue...>',
    summary: 'show the figures of queues',
    options: json,
    examples: ['queue inspect default', 'queue inspect critical low --json'],
    run: inspectQueues,
  });
  addCommand<Json & { readonly days: number }>(group, invocation, {
    usage: 'history <queue...>',
    summary: 'show processed and failed tasks of the last days (UTC)',
    options: [new Option('-x, --days <number>', 'number of days, up to 91').argParser(positive).default(10), ...json],
    examples: ['queue history default', 'queue history default --days 30'],
    run: showHistory,
  });
  addQueueKeys(group, invocation);
  addQueueActions(group, invocation);
}

function addQueueActions(group: Command, invocation: Invocation): void {
  addCommand(group, invocation, {
    usage: 'pause <queue...>',
    summary: 'stop servers from taking tasks of the queues',
    examples: ['queue pause default low'],
    run: pauseQueues,
  });
  addCommand(group, invocation, {
    usage: 'resume <queue...>',
    aliases: ['unpause'],
    summary: 'end the pause of queues',
    examples: ['queue resume default low'],
    run: resumeQueues,
  });
  addCommand<RemoveFlags>(group, invocation, {
    usage: 'remove <queue...>',
    aliases: ['rm', 'delete'],
    summary: 'remove empty queues, or, with --force, queues with all their tasks',
    details: 'With --force it asks first. A queue with active tasks is never removed.',
    options: [new Option('-f, --force', 'also remove a queue that has tasks'), yesOption()],
    examples: ['queue remove old', 'queue remove old older --force --yes'],
    run: removeQueues,
  });
}

async function listQueues(context: CommandContext<Json>): Promise<void> {
  const inspector = await context.inspector();
  const names = (await inspector.queues()).sort();
  const { isCluster } = await context.session();
  const rows = names.map(async (queue) => ({
    queue,
    slot: (await inspector.clusterKeySlot(queue)) ?? null,
    nodes: (await inspector.clusterNodes(queue)) ?? null,
  }));
  const queues = await Promise.all(rows);
  if (context.options.json) return context.json(queues);
  if (!isCluster) return context.print(...names.map(plain));
  context.table(
    [
      { title: 'Queue', cell: ({ queue }) => queue },
      { title: 'Key Slot', cell: ({ slot }) => slot ?? '' },
      { title: 'Nodes', cell: ({ nodes }) => nodes?.join(' ') ?? '' },
    ],
    queues,
  );
}

async function inspectQueues(context: CommandContext<Json>): Promise<void> {
  const inspector = await context.inspector();
  const infos: QueueInfo[] = [];
  await context.forEach(context.args, async (queue) => {
    const info = await inspector.getQueueInfo(queue);
    infos.push(info);
    if (context.options.json) return;
    if (infos.length > 1) context.print('');
    printQueue(context, info);
  });
  if (context.options.json) context.json(infos);
}

function printQueue(context: CommandContext<Json>, info: QueueInfo): void {
  context.heading('Queue');
  context.fields([
    ['Name', info.queue],
    ['Size', info.size],
    ['Groups', info.groups],
    ['Paused', String(info.paused)],
    ['Latency', formatDuration(info.latency)],
    ...(info.held > 0 ? [['Oldest held', formatDuration(info.oldestHeld)] as const] : []),
    ['Memory usage', formatBytes(info.memoryUsage)],
  ]);
  context.print('');
  context.heading('Tasks by state');
  context.table(STATE_COLUMNS, [info]);
  context.print('');
  context.heading(`Today (${info.timestamp.toISOString().slice(0, 10)} UTC)`);
  context.table(DAY_COLUMNS, [info]);
}

type Counted = Record<(typeof COUNTED_STATES)[number], number>;

/** In asynq's order, then ours. */
export const COUNTED_STATES = [
  'active',
  'pending',
  'aggregating',
  'scheduled',
  'retry',
  'archived',
  'completed',
  'waiting',
  'held',
] as const satisfies readonly TaskState[];

/** Tasks by state. */
export const STATE_COLUMNS = COUNTED_STATES.map((state) => ({
  title: state,
  cell: (counted: Counted) => counted[state],
}));

/** Attempts of a day. */
export const DAY_COLUMNS = [
  { title: 'processed', cell: ({ processed }: Attempts) => processed },
  { title: 'failed', cell: ({ failed }: Attempts) => failed },
  { title: 'error rate', cell: ({ processed, failed }: Attempts) => errorRate(processed, failed) },
];

interface Attempts {
  readonly processed: number;
  readonly failed: number;
}

async function showHistory(context: CommandContext<Json & { readonly days: number }>): Promise<void> {
  const inspector = await context.inspector();
  const all: DailyStats[] = [];
  let shown = 0;
  await context.forEach(context.args, async (queue) => {
    const days = await inspector.history(queue, context.options.days);
    all.push(...days);
    if (context.options.json) return;
    if (shown++) context.print('');
    context.heading(`Queue ${queue}`);
    context.table([{ title: 'date (UTC)', cell: ({ date }: DailyStats) => date }, ...DAY_COLUMNS], days);
  });
  if (context.options.json) context.json(all);
}

async function pauseQueues(context: CommandContext): Promise<void> {
  const inspector = await context.inspector();
  await context.forEach(context.args, async (queue) => {
    if (!(await inspector.pauseQueue(queue))) return context.fail(`queue "${queue}" is already paused`);
    context.print(plain(`Queue "${queue}" is paused`));
    if (await inspector.hasQueue(queue)) return;
    const suggestion = await suggestQueue(context, queue);
    context.note(`note: queue "${queue}" has never had a task${suggestion && `; ${suggestion}`}`);
  });
}

async function resumeQueues(context: CommandContext): Promise<void> {
  const inspector = await context.inspector();
  await context.forEach(context.args, async (queue) => {
    if (!(await inspector.unpauseQueue(queue))) return context.fail(`queue "${queue}" is not paused`);
    context.print(plain(`Queue "${queue}" is resumed`));
  });
}

async function removeQueues(context: CommandContext<RemoveFlags>): Promise<void> {
  const { force = false } = context.options;
  const inspector = await context.inspector();
  if (force && !(await confirm(context, `remove ${await describeQueues(inspector, context)}`))) return;
  const signal = context.terminal.interruption();
  await context.forEach(context.args, async (queue) => {
    const total = force ? (await inspector.getQueueInfo(queue)).size : 0;
    await withProgress(context.terminal, `remove queue "${queue}"`, (report) =>
      inspector.deleteQueue(queue, { force, signal, onProgress: report && ((done) => report({ done, total })) }),
    );
    context.print(plain(`Queue "${queue}" is removed`));
  });
}

/** Names the queues with their numbers of tasks, for the question. */
async function describeQueues(
  inspector: AsynqInspector,
  { args, options }: CommandContext<RemoveFlags>,
): Promise<string> {
  if (options.yes) return 'queues';
  const sizes = await Promise.all(args.map(async (queue) => (await inspector.getQueueInfo(queue)).size));
  return args.map((queue, index) => `queue "${queue}" with ${countTasks(sizes[index]!)}`).join(', ');
}
