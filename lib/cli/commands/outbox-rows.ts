import { type Command, InvalidArgumentError, Option } from 'commander';
import { CommandLineError } from '../../errors.js';
import { ROW_STATES, type RowState } from '../../outbox/sql/row-states.js';
import type { RowCriteria, ShownRow } from '../../outbox/sql/row-work.js';
import { formatDuration } from '../../words/when.js';
import type { Column } from '../output/table.js';
import type { CommandContext } from '../tree/command-context.js';
import { confirm } from '../tree/confirm.js';
import { type DatabaseFlags, databaseOptions, withRows } from '../tree/outbox-rows.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { count, duration, jsonOption, positive, yesOption } from '../tree/values.js';

interface RowFlags extends DatabaseFlags {
  readonly queue?: string;
  readonly error?: string;
  /** Milliseconds. */
  readonly olderThan?: number;
}

interface ListFlags extends RowFlags {
  readonly state: RowState;
  readonly size: number;
  readonly after: number;
  readonly json?: boolean;
}

interface RetryFlags extends RowFlags {
  readonly dryRun?: boolean;
}

interface DeleteFlags extends RetryFlags {
  readonly state: RowState;
  readonly yes?: boolean;
}

/** A relay that has taken a row may be sending it. */
const DELETABLE = ROW_STATES.filter((state) => state !== 'taken');

const MOST_ROWS = 1_000;

export function addOutboxRows(group: Command, invocation: Invocation): void {
  addCommand<ListFlags>(group, invocation, {
    usage: 'rows',
    summary: 'list the rows of a state, by their ids',
    details:
      'It connects to the database, not to Redis. Rows of the states "sent", "existing" and "replaced" are proof, and stay for a while.',
    options: [
      stateOption(ROW_STATES),
      ...rowOptions(),
      new Option('--size <number>', `rows, up to ${MOST_ROWS}`).argParser(size).default(30),
      new Option('--after <id>', 'continue after the row with this id').argParser(count).default(0),
      jsonOption(),
      ...databaseOptions(),
    ],
    examples: ['outbox rows --database postgres://localhost/app', 'outbox rows -s new --older-than 5m --json'],
    run: listRows,
  });
  addCommand<RetryFlags>(group, invocation, {
    usage: 'retry [ids...]',
    summary: 'have poisoned rows tried once more: these, those that match, or all',
    options: [...rowOptions(), dryRunOption(), ...databaseOptions()],
    examples: ['outbox retry 17 18', 'outbox retry --error "cannot be read" --dry-run'],
    run: retryRows,
  });
  addCommand<DeleteFlags>(group, invocation, {
    usage: 'delete [ids...]',
    aliases: ['rm', 'remove'],
    summary: 'delete rows of a state: these, those that match, or all; counts them and asks first',
    details: 'The task of a row that is new or poisoned is lost with it. That of a row that was sent is in Redis.',
    options: [stateOption(DELETABLE), ...rowOptions(), dryRunOption(), yesOption(), ...databaseOptions()],
    examples: ['outbox delete 17', 'outbox delete -s refused --older-than 24h --yes'],
    run: deleteRows,
  });
}

const stateOption = (states: readonly RowState[]): Option =>
  new Option('-s, --state <state>', 'state of the rows').choices(states).default('poisoned');

const rowOptions = (): Option[] => [
  new Option('-q, --queue <name>', 'only: of this queue'),
  new Option('--error <text>', 'only: text in the error'),
  new Option('--older-than <duration>', 'only: written so long ago at least').argParser(duration),
];

const dryRunOption = (): Option => new Option('--dry-run', 'only count them');

async function listRows(context: CommandContext<ListFlags>): Promise<void> {
  const { state, size: limit, after, json } = context.options;
  const criteria = criteriaOf(context, state);
  await withRows(context, async (rows) => {
    const found = await rows.list(criteria, { after, limit });
    const next = found.length === limit ? found.at(-1)!.id : null;
    if (json) return context.json({ rows: found.map(rowAsJson), next });
    if (found.length > 0) context.table(COLUMNS, found);
    else context.note(`No rows of the state "${state}"`);
    if (next !== null) context.note(`There may be more: --after ${next}`);
  });
}

async function retryRows(context: CommandContext<RetryFlags>): Promise<void> {
  const criteria = criteriaOf(context, 'poisoned');
  await withRows(context, async (rows) => {
    if (context.options.dryRun) return print(context, await rows.count(criteria), 'would be tried once more');
    print(context, await rows.retry(criteria), 'new again');
  });
}

async function deleteRows(context: CommandContext<DeleteFlags>): Promise<void> {
  const { state, dryRun } = context.options;
  const criteria = criteriaOf(context, state);
  await withRows(context, async (rows) => {
    const number = await rows.count(criteria);
    if (dryRun) return print(context, number, 'would be deleted');
    if (number === 0) return print(context, 0, 'deleted');
    if (await confirm(context, `delete ${countRows(number)} of the state "${state}"`)) {
      print(context, await rows.delete(criteria), 'deleted');
    }
  });
}

function criteriaOf({ args, options }: CommandContext<RowFlags>, state: RowState): RowCriteria {
  const { queue, error, olderThan } = options;
  const ids = args.length > 0 ? args.map(idOf) : undefined;
  return { state, ids, queue, error, olderThan };
}

function idOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new CommandLineError(`the id of a row is a number, not ${JSON.stringify(text)}`);
}

function size(text: string): number {
  const number = positive(text);
  if (number <= MOST_ROWS) return number;
  throw new InvalidArgumentError(`It must be at most ${MOST_ROWS}.`);
}

const countRows = (number: number): string => (number === 1 ? '1 row' : `${number} rows`);

const print = (context: CommandContext<object>, number: number, what: string): void =>
  context.print(`${countRows(number)} ${what}`);

const rowAsJson = ({ id, queue, taskId, type, state, error, age }: ShownRow): object => ({
  id,
  queue,
  taskId,
  type,
  state,
  error: error ?? null,
  age: Math.round(age),
});

const COLUMNS: readonly Column<ShownRow>[] = [
  { title: 'Row', cell: ({ id }) => id },
  { title: 'Queue', cell: ({ queue }) => queue },
  { title: 'Type', cell: ({ type }) => type },
  { title: 'Task', cell: ({ taskId }) => taskId },
  { title: 'Age', cell: ({ age }) => formatDuration(Math.round(age / 1000) * 1000) },
  { title: 'Error', cell: ({ error }) => error ?? '', shrinks: true },
];
