import { type Command, InvalidArgumentError, Option } from 'commander';
import { TaskNotFoundError } from '../../errors.js';
import type { PageOptions } from '../../inspector/list-options.js';
import type { HandlerStepInfo, HandlerStepList } from '../../inspector/handler-step.js';
import { formatDistance, formatDuration } from '../../words/when.js';
import { plain } from '../output/text.js';
import type { Column } from '../output/table.js';
import type { CommandContext } from '../tree/command-context.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { idOption, jsonOption, pageOptions, queueOption } from '../tree/values.js';

interface OneTask {
  readonly queue: string;
  readonly id: string;
}

interface StepsFlags extends OneTask, PageOptions {
  readonly json?: boolean;
}

interface SignalFlags extends OneTask {
  /** In an object, as `undefined` is no payload, and `null` is one. */
  readonly payload?: { readonly value: unknown };
}

export function addTaskSteps(group: Command, invocation: Invocation): void {
  addCommand<StepsFlags>(group, invocation, {
    usage: 'steps',
    summary: 'show the steps of the handler of a task, and the signals it has got',
    details:
      'As far as they are stored with the task: nothing is stored of a step that runs right now, or has failed with its task.',
    options: [queueOption(), idOption(), ...pageOptions('steps'), jsonOption()],
    examples: ['task steps -q default -i order-17', 'task steps -q default -i order-17 --page 2 --size 100'],
    run: showSteps,
  });
  addCommand<SignalFlags>(group, invocation, {
    usage: 'signal <name>',
    summary: 'send a signal to the handler of a task, which waits for it or will do so',
    options: [queueOption(), idOption(), new Option('-l, --payload <json>', 'payload (default: none)').argParser(json)],
    examples: [`task signal approval -q default -i order-17 -l '{"by":"anna"}'`],
    run: sendSignal,
  });
}

function json(text: string): { readonly value: unknown } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    throw new InvalidArgumentError(`It must be JSON: ${(error as Error).message}.`);
  }
}

async function showSteps(context: CommandContext<StepsFlags>): Promise<void> {
  const { queue, id, page, size, json: asJson } = context.options;
  const inspector = await context.inspector();
  const found = await inspector.steps(queue, id, { page, size });
  if (!found && !(await inspector.getTaskInfo(queue, id))) throw new TaskNotFoundError(queue, id);
  if (asJson) return context.json(found ? listAsJson(found) : null);
  if (!found) return context.note(`Task "${id}" of queue "${queue}" has no steps`);
  const { steps, total, signals, undoing } = found;
  if (steps.length > 0) context.table(columns(context.now), steps);
  for (const { name, count, taken } of signals)
    context.print(plain(`Signal "${name}": ${count} came, ${taken} taken by waits`));
  if (undoing) {
    const state = undoing.over ? 'Its steps are undone' : 'Its steps are being undone';
    context.print(plain(`${state}: ${undoing.error ?? 'it has failed'}`));
  }
  if (steps.length < total) context.note(`${steps.length} of ${total} steps: --page, --size`);
}

const columns = (now: number): Column<HandlerStepInfo>[] => [
  { title: 'Step', cell: ({ name }) => name },
  { title: 'Kind', cell: ({ kind }) => kind },
  { title: 'State', cell: ({ state, tries }) => (tries === undefined ? state : `${state} (${tries} failed)`) },
  { title: 'Started', cell: ({ startedAt }) => formatDistance(startedAt, now) },
  { title: 'Took', cell: took },
  { title: 'Until', cell: ({ wakeAt }) => formatDistance(wakeAt, now) },
  { title: 'Of', cell: aboutOf },
  { title: 'Result', cell: ({ error, ...step }) => error ?? resultOf(step), shrinks: true },
];

const took = ({ startedAt, endedAt }: HandlerStepInfo): string =>
  endedAt === undefined ? '' : formatDuration(Math.max(0, endedAt.getTime() - startedAt.getTime()));

function aboutOf({ signal, child, done }: HandlerStepInfo): string {
  if (signal !== undefined) return `signal ${signal}`;
  if (child) return `task ${child.id} in ${child.queue}`;
  return done === undefined ? '' : `${done} done`;
}

const resultOf = ({ result, resultSize }: Pick<HandlerStepInfo, 'result' | 'resultSize'>): string =>
  result === undefined && resultSize > 0 ? `${resultSize} bytes` : (JSON.stringify(result) ?? '');

/** Every field is there: what is unknown is null. */
const listAsJson = ({ steps, undoing, ...rest }: HandlerStepList): object => ({
  ...rest,
  undoing: undoing ? { ...undoing, error: undoing.error ?? null } : null,
  steps: steps.map((step) => Object.fromEntries(Object.entries(step).map(([name, value]) => [name, value ?? null]))),
});

async function sendSignal(context: CommandContext<SignalFlags>): Promise<void> {
  const { queue, id, payload } = context.options;
  const name = context.args[0]!;
  await (await context.client()).signal({ queue, id }, { name }, payload?.value as undefined);
  context.print(plain(`Task "${id}" of queue "${queue}" has the signal "${name}"`));
}
