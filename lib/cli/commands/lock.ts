import { type Command, Option } from 'commander';
import type { LockInfo } from '../../inspector/locks.js';
import type { CommandContext } from '../tree/command-context.js';
import { formatDistance } from '../../words/when.js';
import { addCommand, addGroup, type Invocation } from '../tree/tree.js';
import { jsonOption, queueOption } from '../tree/values.js';

interface LockFlags {
  readonly queue: string;
  readonly cursor?: string;
  readonly json?: boolean;
}

export function addLockCommands(root: Command, invocation: Invocation): void {
  const group = addGroup(root, 'lock', 'see what keeps equal tasks out');
  addCommand<LockFlags>(group, invocation, {
    usage: 'list',
    aliases: ['ls'],
    summary: "list the locks of unique tasks, Go's too, who holds each, and until when",
    options: [queueOption(), new Option('--cursor <cursor>', 'continue after the page that printed it'), jsonOption()],
    examples: ['lock list -q default'],
    run: listLocks,
  });
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
