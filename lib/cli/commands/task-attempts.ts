import { type Command, Option } from 'commander';
import { TaskNotFoundError } from '../../errors.js';
import type { AttemptInfo, AttemptList } from '../../task/attempts.js';
import { formatDistance, formatDuration } from '../../words/when.js';
import type { Column } from '../output/table.js';
import { plain } from '../output/text.js';
import type { CommandContext } from '../tree/command-context.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { idOption, jsonOption, queueOption } from '../tree/values.js';

interface Flags {
  readonly queue: string;
  readonly id: string;
  readonly stack?: boolean;
  readonly json?: boolean;
}

export function addTaskAttempts(group: Command, invocation: Invocation): void {
  addCommand<Flags>(group, invocation, {
    usage: 'attempts',
    summary: 'show the attempts of a task that have ended: when, where, how long, and how they failed',
    details:
      'Of a task that succeeds at once nothing is kept. Numbers that are left out are of attempts of which nothing is known.',
    options: [queueOption(), idOption(), new Option('--stack', 'show the stack of each error, too'), jsonOption()],
    examples: ['task attempts -q default -i order-17', 'task attempts -q default -i order-17 --stack'],
    run: showAttempts,
  });
}

async function showAttempts(context: CommandContext<Flags>): Promise<void> {
  const { queue, id, stack: withStacks, json } = context.options;
  const found = await (await context.inspector()).attempts(queue, id);
  if (!found) throw new TaskNotFoundError(queue, id);
  if (json) return context.json(listAsJson(found));
  const { attempts, total } = found;
  if (attempts.length > 0) context.table(columns(context.now), attempts);
  for (const { number, stack } of withStacks ? attempts : []) {
    if (stack === undefined) continue;
    context.print('');
    context.heading(`Attempt ${number}`);
    context.print(...stack.split('\n').map(plain));
  }
  if (total === 0) context.note(`Task "${id}" of queue "${queue}" has no attempt that failed`);
  else if (attempts.length < total)
    context.note(`Of ${total - attempts.length} of ${total} attempts nothing is known any more`);
}

const columns = (now: number): Column<AttemptInfo>[] => [
  { title: 'Attempt', cell: ({ number }) => String(number) },
  { title: 'Outcome', cell: ({ outcome }) => outcome },
  { title: 'Started', cell: ({ startedAt }) => formatDistance(startedAt, now) },
  { title: 'Ended', cell: ({ endedAt }) => formatDistance(endedAt, now) },
  { title: 'Took', cell: ({ duration }) => (duration === undefined ? '' : formatDuration(duration)) },
  { title: 'Server', cell: ({ server = '' }) => server.split(':').slice(0, 2).join(':') },
  { title: 'Error', cell: ({ error }) => error, shrinks: true },
];

/** Every field is there: what is unknown is null. */
const listAsJson = ({ attempts, total }: AttemptList): object => ({
  total,
  attempts: attempts.map((attempt) => {
    const { startedAt = null, duration = null, server = null, stack = null } = attempt;
    return { ...attempt, startedAt, duration, server, stack };
  }),
});
