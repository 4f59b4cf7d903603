import type { Command } from 'commander';
import type { Call } from '../command-context.js';
import { addCommand, addGroup, type Frame } from '../tree.js';
import { jsonOption, queueOption } from '../values.js';

interface GroupFlags {
  readonly queue: string;
  readonly json?: boolean;
}

export function addGroupCommands(root: Command, frame: Frame): void {
  const group = addGroup(root, 'group', 'look at groups of tasks');
  addCommand<GroupFlags>(group, frame, {
    usage: 'list',
    aliases: ['ls'],
    summary: 'list the groups of a queue that have waiting tasks',
    options: [queueOption(), jsonOption()],
    examples: ['group list -q default'],
    run: listGroups,
  });
}

async function listGroups(call: Call<GroupFlags>): Promise<void> {
  const { queue, json } = call.options;
  const groups = await (await call.inspector()).groups(queue);
  if (json) return call.json(groups);
  if (groups.length === 0) return call.note(`No groups in queue "${queue}"`);
  call.table(
    [
      { title: 'Group', cell: ({ group }) => group },
      { title: 'Tasks', cell: ({ size }) => size },
    ],
    groups,
  );
}
