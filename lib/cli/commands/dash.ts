import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CommandContext } from '../tree/command-context.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { duration } from '../tree/values.js';

interface DashFlags {
  /** Milliseconds. */
  readonly refresh: number;
}

export function addDash(root: Command, invocation: Invocation): void {
  addCommand<DashFlags>(root, invocation, {
    usage: 'dash',
    summary: 'show queues and tasks live, and act on them',
    details:
      'Shows queues, the states of a queue, the tasks of a state, one task: Enter opens, Esc goes back, ? shows all keys. ' +
      'Capital letters run, archive, delete and cancel tasks, and pause queues.',
    options: [
      new Option('--refresh <duration>', 'time between two reads of Redis, at least 1s')
        .argParser(atLeastASecond)
        .default(8000, '8s'),
    ],
    examples: ['dash', 'dash --refresh 2s'],
    run: showDash,
  });
}

function atLeastASecond(text: string): number {
  const milliseconds = duration(text);
  if (milliseconds >= 1000) return milliseconds;
  throw new InvalidArgumentError('It must be at least 1s.');
}

async function showDash(context: CommandContext<DashFlags>): Promise<void> {
  const [{ Dashboard }, { Backend }, { requireScreen }] = await Promise.all([
    import('../dash/dashboard.js'),
    import('../dash/backend.js'),
    import('../dash/screen.js'),
  ]);
  requireScreen(context.terminal);
  const backend = new Backend(await context.inspector());
  const { where } = await context.session();
  const { refresh } = context.options;
  const end = await new Dashboard({ terminal: context.terminal, backend, refresh, where }).run();
  if (end === 'interrupt') throw new DOMException('interrupted', 'AbortError');
}
