import type { Command } from 'commander';
import { PROGRAM } from '../output/words.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { jsonOption } from '../tree/values.js';

export function addVersion(root: Command, invocation: Invocation): void {
  addCommand<{ readonly json?: boolean }>(root, invocation, {
    usage: 'version',
    summary: 'print the version',
    options: [jsonOption()],
    examples: ['version', 'version --json'],
    run: (context) => {
      if (context.options.json) return context.json({ version: context.terminal.version });
      context.print(`${PROGRAM} version ${context.terminal.version}`);
    },
  });
}
