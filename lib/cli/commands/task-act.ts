import { type Command, Option } from 'commander';
import { InvalidOptionError } from '../../errors.js';
import type { CancelOptions } from '../../inspector/cancel-options.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { CommandContext } from '../tree/command-context.js';
import { plain } from '../output/text.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { cancelOptions, idOption, type ProcessFlags, processOptions, queueOption } from '../tree/values.js';

interface OneTask {
  readonly queue: string;
  readonly id: string;
}

/** The actions on one task: their commands, and the word for the result. */
const ACTIONS = [
  {
    usage: 'archive',
    aliases: [],
    summary: 'archive a task, to run or delete it later',
    done: 'archived',
    act: (inspector: AsynqInspector, { queue, id }: OneTask) => inspector.archiveTask(queue, id),
  },
  {
    usage: 'delete',
    aliases: ['remove', 'rm'],
    summary: 'delete a task that is not active',
    done: 'deleted',
    act: (inspector: AsynqInspector, { queue, id }: OneTask) => inspector.deleteTask(queue, id),
  },
  {
    usage: 'run',
    aliases: [],
    summary: 'run a waiting task now',
    done: 'pending',
    act: (inspector: AsynqInspector, { queue, id }: OneTask) => inspector.runTask(queue, id),
  },
] as const;

export function addTaskActions(group: Command, invocation: Invocation): void {
  addCancel(group, invocation);
  for (const { act, done, ...spec } of ACTIONS) {
    addCommand<OneTask>(group, invocation, {
      ...spec,
      options: [queueOption(), idOption()],
      examples: [`task ${spec.usage} -q default -i f1720682-f5a6-4db1-8953-4f48ae541d0f`],
      run: async (context) => {
        await act(await context.inspector(), context.options);
        context.print(plain(`Task "${context.options.id}" of queue "${context.options.queue}" is ${done}`));
      },
    });
  }
  addChanges(group, invocation);
}

function addCancel(group: Command, invocation: Invocation): void {
  addCommand<CancelOptions>(group, invocation, {
    usage: 'cancel <id...>',
    summary: 'cancel tasks that are running',
    details:
      'Asks the servers that run them, without a reply. A Go server ignores reason and outcome: it retries the task.',
    options: cancelOptions(),
    examples: [
      'task cancel f1720682-f5a6-4db1-8953-4f48ae541d0f',
      "task cancel order-17 --reason 'the order was withdrawn' --outcome archive",
    ],
    run: cancelTasks,
  });
}

function addChanges(group: Command, invocation: Invocation): void {
  addCommand<OneTask & { readonly payload: string }>(group, invocation, {
    usage: 'update-payload',
    summary: 'replace the payload of a scheduled, pending, held, waiting, retry or archived task',
    options: [
      queueOption(),
      idOption(),
      new Option('-l, --payload <text>', 'new payload, stored as it is').makeOptionMandatory(),
    ],
    examples: [`task update-payload -q default -i order-17 -l '{"userId":42}'`],
    run: updatePayload,
  });
  addCommand<OneTask & ProcessFlags>(group, invocation, {
    usage: 'reschedule',
    summary: 'change the time at which a task runs that neither runs now nor waits for other tasks',
    options: [queueOption(), idOption(), ...processOptions()],
    examples: [
      'task reschedule -q default -i order-17 --process_in 2h',
      'task reschedule -q default -i order-17 --process_at 2030-01-02T15:04:05Z',
    ],
    run: reschedule,
  });
}

async function cancelTasks(context: CommandContext<CancelOptions>): Promise<void> {
  const { reason, outcome } = context.options;
  const inspector = await context.inspector();
  await context.forEach(context.args, async (id) => {
    await inspector.cancelProcessing(id, { reason, outcome });
    context.print(plain(`Asked to cancel task "${id}"`));
  });
}

async function reschedule(context: CommandContext<OneTask & ProcessFlags>): Promise<void> {
  const { queue, id, process_at: at, process_in: after } = context.options;
  const when = at ?? after;
  if (when === undefined) throw new InvalidOptionError('the time is missing; give --process_at or --process_in');
  await (await context.inspector()).rescheduleTask(queue, id, when);
  context.print(plain(`Task "${id}" of queue "${queue}" has its new time`));
}

async function updatePayload(context: CommandContext<OneTask & { readonly payload: string }>): Promise<void> {
  const { queue, id, payload } = context.options;
  await (await context.inspector()).updateTaskPayload(queue, id, Buffer.from(payload));
  context.print(plain(`Task "${id}" of queue "${queue}" has its new payload`));
}
