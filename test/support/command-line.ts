import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import type { Command } from 'commander';
import { buildProgram } from '../../lib/cli/program.js';
import { runCommandLine } from '../../lib/cli/run.js';
import type { Terminal } from '../../lib/cli/output/terminal.js';
import { type Clock, SystemClock } from '../../lib/clock.js';

export interface CommandResult {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandEnvironment {
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Makes all three streams terminals with this many columns. */
  readonly columns?: number;
  /** The text on stdin. */
  readonly input?: string;
  readonly interruption?: AbortSignal;
}

class Stream extends PassThrough {
  text = '';

  constructor(
    readonly isTTY: boolean,
    readonly columns: number | undefined,
  ) {
    super();
    this.on('data', (chunk: Buffer) => (this.text += chunk.toString()));
  }
}

/** Runs a command line in this process, without its environment variables. */
export async function runInProcess(
  args: readonly string[],
  environment: CommandEnvironment = {},
): Promise<CommandResult> {
  const { env = {}, clock = new SystemClock(), columns, input, interruption } = environment;
  const stdin = Object.assign(new PassThrough(), { isTTY: columns !== undefined });
  const [stdout, stderr] = [new Stream(columns !== undefined, columns), new Stream(columns !== undefined, columns)];
  if (input !== undefined) stdin.end(input);
  const terminal: Terminal = {
    stdin,
    stdout,
    stderr,
    clock,
    version: '1.2.3',
    env: {
      HOME: '/nowhere',
      ...env,
    },
    interruption: () => interruption ?? new AbortController().signal,
    onEnd: () => () => undefined,
  };
  const status = await runCommandLine(args, terminal);
  return { status, stdout: stdout.text, stderr: stderr.text };
}

/** The tree of all commands, to be read, not run. */
export function readableProgram(): Command {
  const stream = new PassThrough();
  const terminal: Terminal = {
    stdin: stream,
    stdout: stream,
    stderr: stream,
    env: {},
    clock: new SystemClock(),
    version: '1.2.3',
    interruption: () => AbortSignal.abort(),
    onEnd: () => () => undefined,
  };
  return buildProgram({ terminal, failed: false });
}

/** Without escape sequences for colors and styles. */
export const withoutStyles = (text: string): string => stripVTControlCharacters(text);
