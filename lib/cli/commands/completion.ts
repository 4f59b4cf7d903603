import { Argument, type Command } from 'commander';
import { withTimeout } from '../../async.js';
import { CommandContext } from '../tree/command-context.js';
import { complete, type NameKind, type Names } from '../tree/complete.js';
import { COMPLETION_SCRIPTS, type Shell } from '../tree/completion-scripts.js';
import type { Terminal } from '../output/terminal.js';
import { addCommand, type Invocation } from '../tree/tree.js';

/** How many runs or batches are offered: the newest. */
const MAX_IDS = 100;
/** How long completion waits for Redis. */
const REPLY_TIMEOUT_MS = 1_000;

export function addCompletion(root: Command, invocation: Invocation): void {
  addCommand(root, invocation, {
    usage: 'completion',
    arguments: [new Argument('<shell>', 'the shell').choices(Object.keys(COMPLETION_SCRIPTS))],
    summary: 'print a script that completes commands, flags, and names of queues, runs and batches',
    examples: [
      'completion bash >> ~/.bashrc',
      'completion zsh >> ~/.zshrc',
      'completion fish > ~/.config/fish/completions/nestjs-asynq.fish',
    ],
    run: (context) => void context.terminal.stdout.write(COMPLETION_SCRIPTS[context.args[0] as Shell]),
  });
  addCommand(root, invocation, {
    usage: '__complete [word...]',
    summary: 'print the words that may come next; for the completion scripts',
    examples: ['__complete -- queue in'],
    hidden: true,
    run: async (context) => {
      for (const { text, meaning } of await complete(root, context.args, namesFrom(context.terminal)))
        context.print(`${text}\t${meaning}`);
    },
  });
}

/** Reads the names over the connection that the line to be completed describes. */
const namesFrom =
  (terminal: Terminal): Names =>
  async (kind, flags) => {
    const context = new CommandContext(terminal, [], {}, flags);
    try {
      await context.session(); // loading modules takes a part of a second, which must not count
      return await withTimeout(ask(context, kind, flags['queue']), REPLY_TIMEOUT_MS, terminal.clock, () => []);
    } catch {
      return [];
    } finally {
      await context.close();
    }
  };

/** @param given the queue named before on the line */
async function ask(context: CommandContext, kind: NameKind, given: string | true | undefined): Promise<string[]> {
  const inspector = await context.inspector();
  const newest = { queue: typeof given === 'string' ? given : undefined, size: MAX_IDS };
  switch (kind) {
    case 'queue':
      return inspector.queues();
    case 'entry':
      return (await inspector.schedulerEntries()).map(({ id }) => id);
    case 'run':
      return (await inspector.listWorkflows(newest)).map(({ id }) => id);
    case 'batch':
      return (await inspector.listBatches(newest)).map(({ id }) => id);
  }
}
