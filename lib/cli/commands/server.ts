import type { Command } from 'commander';
import type { RunningServer } from '../../inspector/views.js';
import type { CommandContext } from '../tree/command-context.js';
import { bytesAsJson } from '../output/json.js';
import { addCommand, addGroup, type Invocation } from '../tree/tree.js';
import { jsonOption } from '../tree/values.js';
import { formatDistance } from '../../words/when.js';

export function addServerCommands(root: Command, invocation: Invocation): void {
  const group = addGroup(root, 'server', 'show servers');
  addCommand<{ readonly json?: boolean }>(group, invocation, {
    usage: 'list',
    aliases: ['ls'],
    summary: 'list running servers with their queues by priority',
    details: 'A killed server stays listed for up to ten seconds.',
    options: [jsonOption()],
    examples: ['server list'],
    run: listServers,
  });
}

async function listServers(context: CommandContext<{ readonly json?: boolean }>): Promise<void> {
  const servers = await (await context.inspector()).servers();
  const sorted = servers.sort((a, b) => compare(a.host, b.host) || a.pid - b.pid || compare(a.id, b.id));
  if (context.options.json) return context.json(sorted.map(serverAsJson));
  if (sorted.length === 0) return context.note('No server is running');
  context.table(
    [
      { title: 'Host', cell: ({ host }) => host },
      { title: 'PID', cell: ({ pid }) => pid },
      { title: 'State', cell: ({ status }) => status },
      { title: 'Active', cell: ({ activeWorkers, concurrency }) => `${activeWorkers.length}/${concurrency}` },
      { title: 'Queues', cell: byPriority, shrinks: true },
      { title: 'Started', cell: ({ startedAt }) => formatDistance(startedAt, context.now) },
    ],
    sorted,
  );
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

/** `critical:6 default:3 low:1` */
const byPriority = ({ queues }: RunningServer): string =>
  Object.entries(queues)
    .sort(([a, x], [b, y]) => y - x || compare(a, b))
    .map(([name, priority]) => `${name}:${priority}`)
    .join(' ');

const serverAsJson = (server: RunningServer): object => ({
  ...server,
  activeWorkers: server.activeWorkers.map(({ taskPayload, ...worker }) => {
    const { text, encoding } = bytesAsJson(taskPayload);
    return { ...worker, taskPayload: text, taskPayloadEncoding: encoding };
  }),
});
