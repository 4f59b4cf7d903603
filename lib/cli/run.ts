import { type Command, CommanderError, type Option } from 'commander';
import { explain, isInterruption, isWrongUse } from './output/failures.js';
import { buildProgram } from './program.js';
import { SETTINGS } from './connection/settings.js';
import type { Terminal } from './output/terminal.js';

/** The exit status of a run. */
export const EXIT_STATUS = {
  ok: 0,
  /** Something was not done. */
  failed: 1,
  /** The command line, a setting, or a value on it is wrong; nothing was done. */
  usage: 2,
  /** The status that shells report after Ctrl-C. */
  interrupted: 130,
} as const;

/**
 * Runs one command line. Errors go to standard error; the promise never rejects.
 *
 * @param args without the names of node and program
 * @returns the exit status
 */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  const invocation = { terminal, failed: false };
  try {
    const root = buildProgram(invocation);
    await root.parseAsync(expandSwitches(args, root), { from: 'user' });
    return invocation.failed ? EXIT_STATUS.failed : EXIT_STATUS.ok;
  } catch (error) {
    return report(error, terminal);
  }
}

/** Go's flags accept `--tls=false`. After an option that takes a value, such a word is that value. */
function expandSwitches(args: readonly string[], root: Command): string[] {
  const takingValues = new Set(optionsOf(root).flatMap(({ required, short, long }) => (required ? [short, long] : [])));
  return args.flatMap((arg, index) => (index > 0 && takingValues.has(args[index - 1]) ? [arg] : expandSwitch(arg)));
}

const optionsOf = (command: Command): Option[] => [...command.options, ...command.commands.flatMap(optionsOf)];

function expandSwitch(arg: string): string[] {
  const [, name, value] = /^--(cluster|tls|insecure|json|force|yes)=(true|false)$/.exec(arg) ?? [];
  if (name === undefined) return [arg];
  if (value === 'true') return [`--${name}`];
  return name in SETTINGS ? [`--no-${name}`] : [];
}

function report(error: unknown, terminal: Terminal): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_STATUS.ok : EXIT_STATUS.usage; // already reported
  if (isInterruption(error)) return EXIT_STATUS.interrupted;
  terminal.stderr.write(`error: ${explain(error)}\n`);
  return isWrongUse(error) ? EXIT_STATUS.usage : EXIT_STATUS.failed;
}
