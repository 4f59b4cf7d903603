import type { Command } from 'commander';
import { addCommand, PROGRAM, type Frame } from '../tree.js';
import { jsonOption } from '../values.js';

export function addVersion(root: Command, frame: Frame): void {
  addCommand<{ readonly json?: boolean }>(root, frame, {
    usage: 'version',
    summary: 'print the version',
    options: [jsonOption()],
    examples: ['version'],
    hidden: true,
    run: (call) => {
      if (call.options.json) return call.json({ version: call.terminal.version });
      call.print(`${PROGRAM} version ${call.terminal.version}`);
    },
  });
}
