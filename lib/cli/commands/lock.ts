import { type Command, Option } from 'commander';
import type { LockInfo } from '../../inspector/locks.js';
import type { CommandContext } from '../tree/command-context.js';
import { confirm } from '../tree/confirm.js';
import { formatDistance } from '../../words/when.js';
import { addCommand, addGroup, type Invocation } from '../tree/tree.js';
import { jsonOption, queueOption, yesOption } from '../tree/values.js';

interface LockFlags {
  readonly queue: string;
  readonly cursor?: string;
  readonly json?: boolean;
}

interface ReleaseFlags {
  readonly queue: string;
  readonly holder: string;
  readonly yes?: boolean;
}

export function addLockCommands(root: Command, invocation: Invocation): void {
  const group = addGroup(root, 'lock', 'see and free what keeps equal tasks out');
  addCommand<LockFlags>(group, invocation, {
    usage: 'list',
    aliases: ['ls'],
    summary: "list the locks of unique tasks, Go's too, who holds each, and until when",
    options: [queueOption(), new Option('--cursor <cursor>', 'continue after the page that printed it'), jsonOption()],
    examples: ['lock list -q default'],
    run: listLocks,
  });
  addCommand<ReleaseFlags>(group, invocation, {
    usage: 'release <name>',
    summary: 'free a lock by hand, so that the next equal task is a new one; shows who holds it, and asks first',
    details: 'The task that holds it stays as it is. Nothing is freed when another task holds it by then.',
    options: [
      queueOption(),
      new Option('--holder <id>', 'the task that holds it, as the list shows it').makeOptionMandatory(),
      yesOption(),
    ],
    examples: ['lock release -q default --holder 4c86 order:charge:order-7:key --yes'],
    run: releaseLock,
  });
}

async function releaseLock(context: CommandContext<ReleaseFlags>): Promise<void> {
  const { queue, holder } = context.options;
  const name = context.args[0]!;
  const inspector = await context.inspector();
  const task = await inspector.getTaskInfo(queue, holder);
  const shown = task ? `task ${holder} (${task.type}, ${task.state})` : `task ${holder}, which is over,`;
  if (!(await confirm(context, `free the lock ${name} of queue "${queue}", which ${shown} holds`))) return;
  if (!(await inspector.releaseLock(queue, { name, holder: { id: holder } }))) {
    context.failed = true;
    context.note(`Nothing was done: task ${holder} does not hold the lock ${name} of queue "${queue}".`);
    return;
  }
  context.print('1 lock freed');
}

async function listLocks(context: CommandContext<LockFlags>): Promise<void> {
  const { queue, cursor, json } = context.options;
  const { locks, cursor: next } = await (
    await context.inspector()
  ).locks(queue, cursor === undefined ? {} : { cursor });
  if (json) return context.json({ locks, cursor: next ?? null });
  if (locks.length > 0) context.table(columnsOf(context.now), locks);
  else context.note(next === undefined ? `No locks in queue "${queue}"` : 'No locks on this page');
  if (next !== undefined) context.note(`There is more: --cursor ${next}`);
}

const columnsOf = (now: number) => [
  { title: 'Lock', cell: ({ name }: LockInfo) => name, shrinks: true },
  { title: 'Held By', cell: ({ holder }: LockInfo) => holder.id },
  { title: 'Type', cell: ({ holder }: LockInfo) => holder.type ?? '' },
  { title: 'State', cell: ({ holder }: LockInfo) => holder.state ?? 'gone' },
  { title: 'Ends', cell: ({ expiresAt }: LockInfo) => formatDistance(expiresAt, now) },
];
