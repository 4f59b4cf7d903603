import { Argument, type Command } from 'commander';
import { withTimeout } from '../../async.js';
import { Call } from '../command-context.js';
import { complete, type Names } from '../complete.js';
import { COMPLETION_SCRIPTS, type Shell } from '../completion-scripts.js';
import type { Terminal } from '../terminal.js';
import { addCommand, type Frame } from '../tree.js';

/** How long somebody who pressed the tab key waits for Redis. */
const REPLY_TIMEOUT_MS = 1_000;

export function addCompletion(root: Command, frame: Frame): void {
  addCommand(root, frame, {
    usage: 'completion',
    arguments: [new Argument('<shell>', 'the shell').choices(Object.keys(COMPLETION_SCRIPTS))],
    summary: 'print a script that completes commands, flags and names of queues',
    examples: [
      'completion bash >> ~/.bashrc',
      'completion zsh >> ~/.zshrc',
      'completion fish > ~/.config/fish/completions/nestjs-asynq.fish',
    ],
    run: (call) => void call.terminal.stdout.write(COMPLETION_SCRIPTS[call.args[0] as Shell]),
  });
  addCommand(root, frame, {
    usage: '__complete [word...]',
    summary: 'what may come next on a line; for the scripts of completion',
    examples: ['__complete -- queue in'],
    hidden: true,
    run: async (call) => {
      for (const { text, meaning } of await complete(root, call.args, namesFrom(call.terminal)))
        call.print(`${text}\t${meaning}`);
    },
  });
}

/** By the connection that the line to be completed would have. */
const namesFrom =
  (terminal: Terminal): Names =>
  async (kind, flags) => {
    const call = new Call(terminal, [], {}, flags);
    try {
      await call.session(); // loading takes a part of a second, and is no reason to give up
      return await withTimeout(ask(call, kind), REPLY_TIMEOUT_MS, terminal.clock, () => []);
    } catch {
      return [];
    } finally {
      await call.close();
    }
  };

async function ask(call: Call, kind: 'queue' | 'entry'): Promise<string[]> {
  const inspector = await call.inspector();
  return kind === 'queue' ? inspector.queues() : (await inspector.schedulerEntries()).map(({ id }) => id);
}
