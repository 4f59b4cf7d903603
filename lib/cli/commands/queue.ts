import { Option } from 'commander';
import type { Command } from 'commander';
import type { Call } from '../command-context.js';
import { confirm } from '../confirm.js';
import { suggestQueue } from '../known-names.js';
import { withProgress } from '../progress.js';
import { plain } from '../text.js';
import { addCommand, addGroup, type Frame } from '../tree.js';
import { jsonOption, positive, yesOption } from '../values.js';
import { formatDuration } from '../when.js';
import { countTasks, errorRate } from '../words.js';
import { formatBytes } from '../../words/bytes.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { DailyStats, QueueInfo } from '../../inspector/views.js';

interface Json {
  readonly json?: boolean;
}

interface RemoveFlags {
  readonly force?: boolean;
  readonly yes?: boolean;
}

export function addQueueCommands(root: Command, frame: Frame): void {
  const group = addGroup(root, 'queue', 'manage queues');
  const json = [jsonOption()];
  addCommand<Json>(group, frame, {
    usage: 'list',
    aliases: ['ls'],
    summary: 'list the queues; in a cluster with key slot and nodes',
    options: json,
    examples: ['queue list', 'queue list --cluster --cluster_addrs 10.0.0.1:7000'],
    run: listQueues,
  });
  addCommand<Json>(group, frame, {
    usage: 'inspect <queue...>',
    summary: 'show the numbers of one or more queues',
    options: json,
    examples: ['queue inspect default', 'queue inspect critical low --json'],
    run: inspectQueues,
  });
  addCommand<Json & { readonly days: number }>(group, frame, {
    usage: 'history <queue...>',
    summary: 'show how many tasks were processed, and failed, on the last days (UTC)',
    options: [new Option('-x, --days <number>', 'how many days, up to 91').argParser(positive).default(10), ...json],
    examples: ['queue history default', 'queue history default --days 30'],
    run: showHistory,
  });
  addSteering(group, frame);
}

function addSteering(group: Command, frame: Frame): void {
  addCommand(group, frame, {
    usage: 'pause <queue...>',
    summary: 'let no server take tasks of the queues',
    examples: ['queue pause default low'],
    run: pauseQueues,
  });
  addCommand(group, frame, {
    usage: 'resume <queue...>',
    aliases: ['unpause'],
    summary: 'end the pause of queues',
    examples: ['queue resume default low'],
    run: resumeQueues,
  });
  addCommand<RemoveFlags>(group, frame, {
    usage: 'remove <queue...>',
    aliases: ['rm', 'delete'],
    summary: 'remove queues that are empty, or, by force, with all their tasks',
    details: 'With --force it asks before it deletes anything. A queue with active tasks is never removed.',
    options: [new Option('-f, --force', 'also when it has tasks'), yesOption()],
    examples: ['queue remove old', 'queue remove old older --force --yes'],
    run: removeQueues,
  });
}

async function listQueues(call: Call<Json>): Promise<void> {
  const inspector = await call.inspector();
  const names = (await inspector.queues()).sort();
  const { isCluster } = await call.session();
  const places = names.map(async (queue) => ({
    queue,
    slot: (await inspector.clusterKeySlot(queue)) ?? null,
    nodes: (await inspector.clusterNodes(queue)) ?? null,
  }));
  const queues = await Promise.all(places);
  if (call.options.json) return call.json(queues);
  if (!isCluster) return call.print(...names.map(plain));
  call.table(
    [
      { title: 'Queue', cell: ({ queue }) => queue },
      { title: 'Key Slot', cell: ({ slot }) => slot ?? '' },
      { title: 'Nodes', cell: ({ nodes }) => nodes?.join(' ') ?? '' },
    ],
    queues,
  );
}

async function inspectQueues(call: Call<Json>): Promise<void> {
  const inspector = await call.inspector();
  const infos: QueueInfo[] = [];
  await call.forEach(call.args, async (queue) => {
    const info = await inspector.getQueueInfo(queue);
    infos.push(info);
    if (call.options.json) return;
    if (infos.length > 1) call.print('');
    printQueue(call, info);
  });
  if (call.options.json) call.json(infos);
}

function printQueue(call: Call<Json>, info: QueueInfo): void {
  call.heading('Queue');
  call.fields([
    ['Name', info.queue],
    ['Size', info.size],
    ['Groups', info.groups],
    ['Paused', String(info.paused)],
    ['Latency', formatDuration(info.latency)],
    ['Memory usage', formatBytes(info.memoryUsage)],
  ]);
  call.print('');
  call.heading('Tasks by state');
  call.table(STATE_COLUMNS, [info]);
  call.print('');
  call.heading(`Today (${info.timestamp.toISOString().slice(0, 10)} UTC)`);
  call.table(DAY_COLUMNS, [info]);
}

type Counted = Record<'active' | 'pending' | 'aggregating' | 'scheduled' | 'retry' | 'archived' | 'completed', number>;

/** Numbers of tasks by state, in asynq's order. */
export const STATE_COLUMNS = (
  ['active', 'pending', 'aggregating', 'scheduled', 'retry', 'archived', 'completed'] as const
).map((state) => ({ title: state, cell: (counted: Counted) => counted[state] }));

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

async function showHistory(call: Call<Json & { readonly days: number }>): Promise<void> {
  const inspector = await call.inspector();
  const all: DailyStats[] = [];
  let shown = 0;
  await call.forEach(call.args, async (queue) => {
    const days = await inspector.history(queue, call.options.days);
    all.push(...days);
    if (call.options.json) return;
    if (shown++) call.print('');
    call.heading(`Queue ${queue}`);
    call.table([{ title: 'date (UTC)', cell: ({ date }: DailyStats) => date }, ...DAY_COLUMNS], days);
  });
  if (call.options.json) call.json(all);
}

async function pauseQueues(call: Call): Promise<void> {
  const inspector = await call.inspector();
  await call.forEach(call.args, async (queue) => {
    if (!(await inspector.pauseQueue(queue))) return call.fail(`queue "${queue}" is already paused`);
    call.print(plain(`Queue "${queue}" is paused`));
    if (await inspector.hasQueue(queue)) return;
    const suggestion = await suggestQueue(call, queue);
    call.note(`note: queue "${queue}" has never had a task${suggestion && `; ${suggestion}`}`);
  });
}

async function resumeQueues(call: Call): Promise<void> {
  const inspector = await call.inspector();
  await call.forEach(call.args, async (queue) => {
    if (!(await inspector.unpauseQueue(queue))) return call.fail(`queue "${queue}" is not paused`);
    call.print(plain(`Queue "${queue}" is resumed`));
  });
}

async function removeQueues(call: Call<RemoveFlags>): Promise<void> {
  const { force = false } = call.options;
  const inspector = await call.inspector();
  if (force && !(await confirm(call, `remove ${await describeQueues(inspector, call)}`))) return;
  const signal = call.terminal.interruption();
  await call.forEach(call.args, async (queue) => {
    const total = force ? (await inspector.getQueueInfo(queue)).size : 0;
    await withProgress(call.terminal, `remove queue "${queue}"`, (report) =>
      inspector.deleteQueue(queue, { force, signal, onProgress: report && ((done) => report({ done, total })) }),
    );
    call.print(plain(`Queue "${queue}" is removed`));
  });
}

/** Whoever is asked should know how much is at stake. */
async function describeQueues(inspector: AsynqInspector, { args, options }: Call<RemoveFlags>): Promise<string> {
  if (options.yes) return 'queues';
  const sizes = await Promise.all(args.map(async (queue) => (await inspector.getQueueInfo(queue)).size));
  return args.map((queue, index) => `queue "${queue}" with ${countTasks(sizes[index]!)}`).join(', ');
}
