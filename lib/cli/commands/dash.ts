import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Call } from '../command-context.js';
import { addCommand, type Frame } from '../tree.js';
import { duration } from '../values.js';

interface DashFlags {
  /** Milliseconds. */
  readonly refresh: number;
}

export function addDash(root: Command, frame: Frame): void {
  addCommand<DashFlags>(root, frame, {
    usage: 'dash',
    summary: 'look at queues and tasks live, and act on them',
    details:
      'Queues, the states of a queue, the tasks of a state, one task: Enter opens, Esc goes back, ? tells of all keys. ' +
      'Tasks are run, archived, deleted and cancelled, queues paused, by capital letters.',
    options: [
      new Option('--refresh <duration>', 'time between two looks at Redis, at least 1s')
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

async function showDash(call: Call<DashFlags>): Promise<void> {
  const [{ Dashboard }, { Source }, { requireScreen }] = await Promise.all([
    import('../dash/dashboard.js'),
    import('../dash/source.js'),
    import('../dash/screen.js'),
  ]);
  requireScreen(call.terminal);
  const source = new Source(await call.inspector());
  const { where } = await call.session();
  const { refresh } = call.options;
  const end = await new Dashboard({ terminal: call.terminal, source, refresh, where }).run();
  if (end === 'interrupt') throw new DOMException('interrupted', 'AbortError');
}
