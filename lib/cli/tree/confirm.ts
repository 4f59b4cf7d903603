import { createInterface } from 'node:readline';
import { CommandLineError } from '../../errors.js';
import type { CommandContext } from './command-context.js';
import type { Terminal } from '../output/terminal.js';
import { plain } from '../output/text.js';

/**
 * Asks at the terminal whether to do it.
 *
 * @param what as in `delete all archived tasks of queue "default"`
 * @throws CommandLineError when there is no terminal
 */
export async function confirm(context: CommandContext<{ readonly yes?: boolean }>, what: string): Promise<boolean> {
  if (context.options.yes) return true;
  const { stdin, stderr } = context.terminal;
  if (!stdin.isTTY || !stderr.isTTY) {
    throw new CommandLineError(`there is no terminal to ask whether to ${what}; add --yes to do it without asking`);
  }
  stderr.write(`${plain(`${what[0]!.toUpperCase()}${what.slice(1)}?`)} [y/N] `);
  const answer = await readLine(context.terminal);
  if (/^y(es)?$/i.test(answer?.trim() ?? '')) return true;
  if (answer === undefined) stderr.write('\n'); // Ctrl-D
  context.failed = true;
  context.note('Nothing was done.');
  return false;
}

/** Keeps the terminal in its usual mode, so that Ctrl-C remains a signal. Returns `undefined` at the end of the input. */
function readLine({ stdin }: Terminal): Promise<string | undefined> {
  const lines = createInterface({ input: stdin, terminal: false });
  return new Promise((resolve) => {
    lines.once('line', (line) => {
      resolve(line);
      lines.close();
    });
    lines.once('close', () => resolve(undefined));
  });
}
