import { type Command, Option } from 'commander';
import { WorkflowNotFoundError } from '../../errors.js';
import type { PageOptions } from '../../inspector/list-options.js';
import type { WorkflowDetails, WorkflowInfo } from '../../inspector/workflows.js';
import { toStepLines } from '../output/step-tree.js';
import type { Column } from '../output/table.js';
import { plain } from '../output/text.js';
import { formatDistance, formatDuration, formatMoment } from '../../words/when.js';
import type { CommandContext } from '../tree/command-context.js';
import { confirm } from '../tree/confirm.js';
import { addCommand, addGroup, type Invocation } from '../tree/tree.js';
import { jsonOption, pageOptions, queueOption, yesOption } from '../tree/values.js';

interface ListFlags extends PageOptions {
  readonly queue?: string;
  readonly json?: boolean;
}

interface RunFlags {
  readonly queue: string;
  readonly json?: boolean;
  readonly reason?: string;
  readonly yes?: boolean;
}

type Context = CommandContext<RunFlags>;

const ID = 'order:fulfil/17';
const keepingQueue = (): Option => queueOption('queue that keeps the run');

export function addWorkflowCommands(root: Command, invocation: Invocation): void {
  const group = addGroup(root, 'workflow', 'show and change runs of workflows');
  addReading(group, invocation);
  addCommand<RunFlags>(group, invocation, {
    usage: 'cancel <run...>',
    summary: 'end runs: what waits does not run, what runs is cancelled',
    options: [keepingQueue(), new Option('--reason <text>', 'reason for the handlers, shown as error of the steps')],
    examples: [`workflow cancel -q default ${ID} --reason 'the order was withdrawn'`],
    run: cancelRuns,
  });
  addCommand<RunFlags>(group, invocation, {
    usage: 'retry <run...>',
    summary: 'run the failed steps again, and what was cancelled because of them',
    options: [keepingQueue()],
    examples: [`workflow retry -q default ${ID}`],
    run: retryRuns,
  });
  addCommand<RunFlags>(group, invocation, {
    usage: 'delete <run...>',
    aliases: ['remove', 'rm'],
    summary: 'delete ended runs with their results; asks first',
    options: [keepingQueue(), yesOption()],
    examples: [`workflow delete -q default ${ID} --yes`],
    run: deleteRuns,
  });
}

function addReading(group: Command, invocation: Invocation): void {
  addCommand<ListFlags>(group, invocation, {
    usage: 'list',
    aliases: ['ls'],
    summary: 'list runs, newest first',
    options: [
      new Option('-q, --queue <name>', 'only runs that this queue keeps'),
      ...pageOptions('runs'),
      jsonOption(),
    ],
    examples: ['workflow list', 'workflow list -q default --size 100'],
    run: listRuns,
  });
  addCommand<RunFlags>(group, invocation, {
    usage: 'inspect <run>',
    summary: 'show a run with its steps, each below the last of those it waits for',
    options: [keepingQueue(), jsonOption()],
    examples: [`workflow inspect -q default ${ID}`],
    run: inspectRun,
  });
}

async function listRuns(context: CommandContext<ListFlags>): Promise<void> {
  const { queue, page, size, json } = context.options;
  const runs = await (await context.inspector()).listWorkflows({ queue, page, size });
  if (json) return context.json(runs.map(runAsJson));
  if (runs.length === 0) return context.note('No runs of workflows');
  context.table(columns(context.now), runs);
}

const columns = (now: number): Column<WorkflowInfo>[] => [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'Queue', cell: ({ queue }) => queue },
  { title: 'State', cell: ({ state }) => state },
  { title: 'Steps', cell: ({ steps }) => steps },
  { title: 'Open', cell: ({ open }) => open },
  { title: 'Failed', cell: ({ failed }) => failed },
  { title: 'Started', cell: ({ startedAt }) => formatDistance(startedAt, now) },
  { title: 'Took', cell: (run) => took(run, now) },
];

const took = ({ startedAt, endedAt }: WorkflowInfo, now: number): string =>
  formatDuration(Math.max(0, (endedAt?.getTime() ?? now) - startedAt.getTime()));

async function inspectRun(context: Context): Promise<void> {
  const { queue, json } = context.options;
  const id = context.args[0]!;
  const run = await (await context.inspector()).getWorkflow(queue, id);
  if (!run) throw new WorkflowNotFoundError(queue, id);
  if (json) return context.json(detailsAsJson(run));
  const now = context.now;
  context.fields([
    ['ID', run.id],
    ['Queue', run.queue],
    ['State', run.reason === undefined ? run.state : `${run.state}: ${run.reason}`],
    ['Started', formatMoment(run.startedAt, now)],
    ['Ended', formatMoment(run.endedAt, now)],
    ['Took', took(run, now)],
    ['Steps', `${run.steps} (${run.open} open, ${run.failed} failed)`],
  ]);
  context.print('');
  context.table(
    [
      { title: 'Step', cell: ({ name }) => name },
      { title: 'State', cell: ({ state }) => state },
      { title: 'Took', cell: (step) => step.took },
      { title: 'Task', cell: ({ task }) => task },
      { title: 'Also after', cell: ({ after }) => after, shrinks: true },
      { title: 'Error', cell: ({ error }) => error, shrinks: true },
    ],
    toStepLines(run.graph, now),
  );
}

async function cancelRuns(context: Context): Promise<void> {
  const { queue, reason } = context.options;
  const inspector = await context.inspector();
  await context.forEach(context.args, async (id) => {
    const ended = await inspector.cancelWorkflow(queue, id, reason);
    context.print(plain(ended ? `Run "${id}" is cancelled` : `Run "${id}" was over`));
  });
}

async function retryRuns(context: Context): Promise<void> {
  const { queue } = context.options;
  const inspector = await context.inspector();
  await context.forEach(context.args, async (id) => {
    const steps = await inspector.retryWorkflow(queue, id);
    context.print(plain(`Run "${id}" is running: ${steps} ${steps === 1 ? 'step runs' : 'steps run'} again`));
  });
}

async function deleteRuns(context: Context): Promise<void> {
  const { queue } = context.options;
  const runs = context.args.map((id) => `"${id}"`).join(', ');
  if (!(await confirm(context, `delete ${runs} of queue "${queue}" with all results`))) return;
  const inspector = await context.inspector();
  await context.forEach(context.args, async (id) => {
    await inspector.deleteWorkflow(queue, id);
    context.print(plain(`Run "${id}" is deleted`));
  });
}

/** The names of WorkflowInfo, times in RFC 3339. */
const runAsJson = (run: WorkflowInfo): object => ({
  ...run,
  endedAt: run.endedAt ?? null,
  reason: run.reason ?? null,
});

const detailsAsJson = (run: WorkflowDetails): object => ({
  ...runAsJson(run),
  graph: run.graph.map((step) => ({
    ...step,
    error: step.error ?? null,
    readyAt: step.readyAt ?? null,
    endedAt: step.endedAt ?? null,
    lateSince: step.lateSince ?? null,
  })),
});
