import { type Command, Option } from 'commander';
import type { CommandContext } from '../tree/command-context.js';
import { taskAsJson } from '../output/json.js';
import { requireGroup } from '../tree/known-names.js';
import type { Column } from '../output/table.js';
import { describeBytes } from '../output/text.js';
import { crashesInWords } from '../output/words.js';
import { type CriteriaFlags, criteriaOf, criteriaOptions } from '../tree/criteria.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { directionOf, type Order, ORDERS } from '../output/order.js';
import {
  groupOption,
  idOption,
  jsonOption,
  keyOption,
  pageOptions,
  positive,
  queueOption,
  stateOption,
} from '../tree/values.js';
import { formatDistance, formatDuration, formatMoment, formatTime } from '../../words/when.js';
import { noteFieldsOf } from './note-text.js';
import { waitFieldsOf } from './wait-text.js';
import type { TaskList } from '../../inspector/views.js';
import type { SearchOptions, SearchResult } from '../../inspector/search.js';
import { CommandLineError, QueueNotFoundError, TaskNotFoundError } from '../../errors.js';
import type { TaskInfo } from '../../task/info.js';
import type { TaskState } from '../../wire/states.js';

interface ListFlags extends CriteriaFlags, Pick<SearchOptions, 'group' | 'scan' | 'cursor'> {
  readonly queue: string;
  readonly key?: string;
  readonly state: TaskState;
  readonly page?: number;
  readonly order?: Order;
  readonly size: number;
  readonly json?: boolean;
}

export function addTaskReading(group: Command, invocation: Invocation): void {
  addList(group, invocation);
  addCommand<{ queue: string; id: string; json?: boolean }>(group, invocation, {
    usage: 'inspect',
    summary: 'show everything about a task',
    options: [queueOption(), idOption(), jsonOption()],
    examples: ['task inspect -q default -i f1720682-f5a6-4db1-8953-4f48ae541d0f'],
    run: inspectTask,
  });
}

function addList(group: Command, invocation: Invocation): void {
  addCommand<ListFlags>(group, invocation, {
    usage: 'list',
    aliases: ['ls'],
    summary: 'list the tasks of a state, page by page, or search them',
    details:
      'Pages shift while tasks come and go; the cursor printed at the end of a page continues exactly after it. ' +
      'Archived and completed tasks come newest first, the others in the order in which they run. ' +
      'With any of the search flags it searches --scan tasks and shows those that match.',
    options: [
      queueOption(),
      stateOption(),
      groupOption(),
      keyOption(),
      ...pageOptions(),
      new Option('--cursor <cursor>', 'continue after the page or search that printed it').conflicts('page'),
      new Option('--order <order>', 'order by time; with a cursor the order of the page before').choices([...ORDERS]),
      ...criteriaOptions('search'),
      new Option('--scan <number>', 'search: tasks to read, up to 10000 (default: 1000)').argParser(positive),
      jsonOption(),
    ],
    examples: [
      'task list -q default -s pending',
      'task list -q default -s retry --page 2 --size 100',
      'task list -q default -s aggregating -g digest',
      'task list -q imports -s pending --key acme',
      'task list -q default -s archived --type email: --error ECONNREFUSED',
    ],
    run: listTasks,
  });
}

async function listTasks(context: CommandContext<ListFlags>): Promise<void> {
  const found = await findTasks(context);
  const { tasks, damaged, cursor } = found;
  if (context.options.json) {
    return context.json({
      tasks: tasks.map(taskAsJson),
      damaged: damaged.map(({ id, error }) => ({ id, error: error.message })),
      cursor: cursor ?? null,
      ...('scanned' in found && { scanned: found.scanned }),
    });
  }
  const { state, queue } = context.options;
  if (tasks.length > 0) context.table(columnsOf(state, context.now), tasks);
  else
    context.note(
      'scanned' in found ? `None of the ${found.scanned} tasks matches` : `No ${state} tasks in queue "${queue}"`,
    );
  for (const { id, error } of damaged) context.note(`damaged: ${id}: ${error.message}`);
  if (cursor !== undefined) context.note(`There is more: --cursor ${cursor}`);
}

async function findTasks(context: CommandContext<ListFlags>): Promise<TaskList | SearchResult> {
  await requireGroup(context);
  const { queue, state, group, key: fairnessKey, page, size, cursor, scan } = context.options;
  const direction = directionOf(state, context.options);
  const criteria = criteriaOf(context.options);
  if (Object.keys(criteria).length === 0) {
    if (scan !== undefined)
      throw new CommandLineError('--scan is for a search; add --type, --id, --payload or --error');
    return (await context.inspector()).listTasks(queue, state, {
      size,
      page,
      group,
      fairnessKey,
      cursor,
      ...direction,
    });
  }
  if (page !== undefined) throw new CommandLineError('a search has no pages; go on with --cursor');
  const search = { ...criteria, group, fairnessKey, scan, cursor, ...direction };
  return (await context.inspector()).searchTasks(queue, state, search);
}

type Columns = readonly Column<TaskInfo>[];

/** The columns that matter in a state. */
function columnsOf(state: TaskState, now: number): Columns {
  const head: Columns = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'Type', cell: ({ type }) => type },
    { title: 'Payload', cell: ({ payload }) => describeBytes(payload), shrinks: true },
  ];
  const further: Readonly<Record<TaskState, Columns>> = {
    active: [{ title: 'Orphaned', cell: ({ isOrphaned }) => (isOrphaned ? 'yes' : 'no') }],
    pending: [{ title: 'Pending', cell: ({ pendingSince }) => formatDistance(pendingSince, now) }],
    scheduled: [{ title: 'Process', cell: ({ nextProcessAt }) => formatDistance(nextProcessAt, now) }],
    retry: [
      { title: 'Next Retry', cell: ({ nextProcessAt }) => formatDistance(nextProcessAt, now) },
      { title: 'Last Error', cell: ({ lastErr }) => lastErr, shrinks: true },
      { title: 'Last Failed', cell: ({ lastFailedAt }) => formatDistance(lastFailedAt, now) },
      { title: 'Retried', cell: ({ retried }) => retried },
      { title: 'Max Retry', cell: ({ maxRetry }) => maxRetry },
    ],
    archived: [
      { title: 'Last Failed', cell: ({ lastFailedAt }) => formatDistance(lastFailedAt, now) },
      { title: 'Last Error', cell: ({ lastErr }) => lastErr, shrinks: true },
    ],
    completed: [
      { title: 'Completed', cell: ({ completedAt }) => formatDistance(completedAt, now) },
      { title: 'Result', cell: ({ result }) => describeBytes(result), shrinks: true },
    ],
    aggregating: [{ title: 'Group', cell: ({ group }) => group }],
    waiting: [{ title: 'Waits Until', cell: ({ nextProcessAt }) => formatDistance(nextProcessAt, now) }],
    held: [
      { title: 'Held By', cell: ({ heldBy = '' }) => heldBy, shrinks: true },
      { title: 'Held', cell: ({ heldSince }) => formatDistance(heldSince, now) },
    ],
  };
  return [...head, ...further[state]];
}

async function inspectTask(context: CommandContext<{ queue: string; id: string; json?: boolean }>): Promise<void> {
  const { queue, id, json } = context.options;
  const inspector = await context.inspector();
  const task = await inspector.getTaskInfo(queue, id);
  if (!task) {
    throw (await inspector.hasQueue(queue)) ? new TaskNotFoundError(queue, id) : new QueueNotFoundError(queue);
  }
  const wait = await inspector.waits(queue, id);
  if (json) return context.json(wait ? { ...taskAsJson(task), waits: wait } : taskAsJson(task));
  const fields = [
    ...fieldsOf(task, context.now),
    ...noteFieldsOf(task, context.now),
    ...(wait ? waitFieldsOf(wait, context.now) : []),
  ];
  context.fields(fields.filter(([, value]) => value !== ''));
}

const DUE_NOW_OR_WAITING: ReadonlySet<TaskState> = new Set(['pending', 'waiting']);

function fieldsOf(task: TaskInfo, now: number): [title: string, value: string][] {
  return [
    ['Queue', task.queue],
    ['ID', task.id],
    ['Type', task.type],
    ['State', task.state],
    ['Enqueued', formatMoment(task.enqueuedAt, now)],
    ['Retried', `${task.retried}/${task.maxRetry}`],
    ['Crashes', crashesInWords(task)],
    ['Payload', describeBytes(task.payload)],
    [
      'Headers',
      Object.entries(task.headers)
        .map(([key, value]) => `${key}=${value}`)
        .join(', '),
    ],
    ['Group', task.group],
    // A pending task is due at once: what counts is since when it waits. One that waits for others has the end of its wait below.
    ['Next process time', DUE_NOW_OR_WAITING.has(task.state) ? '' : formatMoment(task.nextProcessAt, now)],
    ['Pending since', formatMoment(task.pendingSince, now)],
    ['Held by', task.heldBy ?? ''],
    ['Held since', formatMoment(task.heldSince, now)],
    ['Timeout', task.timeout ? formatDuration(task.timeout) : ''],
    ['Deadline', formatTime(task.deadline)],
    ['Expires', formatTime(task.expiresAt)],
    ['Last failure', formatMoment(task.lastFailedAt, now)],
    ['Last error', task.lastErr],
    ['Completed', formatMoment(task.completedAt, now)],
    ['Retention', task.retention ? formatDuration(task.retention) : ''],
    ['Result', describeBytes(task.result)],
  ];
}
