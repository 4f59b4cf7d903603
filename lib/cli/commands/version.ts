import type { Command } from 'commander';
import type { Terminal } from '../terminal.js';
import { addCommand, PROGRAM, type Outcome } from '../tree.js';
import { jsonOption } from '../values.js';

export function addVersion(root: Command, terminal: Terminal, outcome: Outcome): void {
  addCommand<{ readonly json?: boolean }>(root, terminal, outcome, {
    usage: 'version',
    summary: 'print the version',
    options: [jsonOption()],
    examples: ['version'],
    hidden: true,
    run: (call) => {
      if (call.options.json) return call.json({ version: terminal.version });
      call.print(`${PROGRAM} version ${terminal.version}`);
    },
  });
}
