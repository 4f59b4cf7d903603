import { CommanderError } from 'commander';
import { AsynqError } from '../errors.js';
import { explain } from './call.js';
import { buildProgram } from './program.js';
import { SETTINGS } from './settings.js';
import type { Terminal } from './terminal.js';
import { plainLines } from './text.js';

/** What a run ends with. */
export const STATUS = {
  ok: 0,
  /** Something was not done. */
  failed: 1,
  /** The command line, a setting, or a value on it is wrong; nothing was done. */
  usage: 2,
  /** As shells tell of a Ctrl-C. */
  interrupted: 130,
} as const;

/**
 * Runs one command line. Whatever happens is told on standard error; this never rejects.
 *
 * @param args without the names of node and program
 * @returns the exit status
 */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  const outcome = { failed: false };
  try {
    await buildProgram(terminal, outcome).parseAsync(args.flatMap(expandSwitch), { from: 'user' });
    return outcome.failed ? STATUS.failed : STATUS.ok;
  } catch (error) {
    return report(error, terminal);
  }
}

/** Go's flags take `--tls=false`. */
function expandSwitch(arg: string): string[] {
  const [, name, value] = /^--(cluster|tls|insecure|json|force)=(true|false)$/.exec(arg) ?? [];
  if (name === undefined) return [arg];
  if (value === 'true') return [`--${name}`];
  return name in SETTINGS ? [`--no-${name}`] : [];
}

const WRONG_USE = ['ASYNQ_COMMAND_LINE', 'ASYNQ_INVALID_OPTION', 'ASYNQ_INVALID_TASK'];

function report(error: unknown, terminal: Terminal): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? STATUS.ok : STATUS.usage; // it has told already
  if (error instanceof Error && error.name === 'AbortError') return STATUS.interrupted;
  const isOurs = error instanceof AsynqError;
  const text = isOurs ? explain(error) : `this should not have happened: ${(error as Error).stack ?? String(error)}`;
  terminal.stderr.write(`error: ${plainLines(text)}\n`);
  return isOurs && WRONG_USE.includes(error.code) ? STATUS.usage : STATUS.failed;
}
