import type { Command } from 'commander';
import { addCommand, PROGRAM, type Invocation } from '../tree.js';
import { jsonOption } from '../values.js';

export function addVersion(root: Command, invocation: Invocation): void {
  addCommand<{ readonly json?: boolean }>(root, invocation, {
    usage: 'version',
    summary: 'print the version',
    options: [jsonOption()],
    examples: ['version'],
    hidden: true,
    run: (context) => {
      if (context.options.json) return context.json({ version: context.terminal.version });
      context.print(`${PROGRAM} version ${context.terminal.version}`);
    },
  });
}
