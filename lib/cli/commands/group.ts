import type { Command } from 'commander';
import type { CommandContext } from '../tree/command-context.js';
import { addCommand, addGroup, type Invocation } from '../tree/tree.js';
import { jsonOption, queueOption } from '../tree/values.js';

interface GroupFlags {
  readonly queue: string;
  readonly json?: boolean;
}

export function addGroupCommands(root: Command, invocation: Invocation): void {
  const group = addGroup(root, 'group', 'show groups of tasks');
  addCommand<GroupFlags>(group, invocation, {
    usage: 'list',
    aliases: ['ls'],
    summary: 'list the groups of a queue with waiting tasks',
    options: [queueOption(), jsonOption()],
    examples: ['group list -q default'],
    run: listGroups,
  });
}

async function listGroups(context: CommandContext<GroupFlags>): Promise<void> {
  const { queue, json } = context.options;
  const groups = await (await context.inspector()).groups(queue);
  if (json) return context.json(groups);
  if (groups.length === 0) return context.note(`No groups in queue "${queue}"`);
  context.table(
    [
      { title: 'Group', cell: ({ group }) => group },
      { title: 'Tasks', cell: ({ size }) => size },
    ],
    groups,
  );
}
