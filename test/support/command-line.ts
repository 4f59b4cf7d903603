import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { runCommandLine } from '../../lib/cli/run.js';
import type { Terminal } from '../../lib/cli/output/terminal.js';
import { type Clock, SystemClock } from '../../lib/clock.js';

export interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Surroundings {
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Makes all three streams terminals of so many columns. */
  readonly columns?: number;
  /** What is typed. */
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

/** Runs a command line in this process, with nothing of its environment. */
export async function runHere(args: readonly string[], surroundings: Surroundings = {}): Promise<Ran> {
  const { env = {}, clock = new SystemClock(), columns, input, interruption } = surroundings;
  const stdin = Object.assign(new PassThrough(), { isTTY: columns !== undefined });
  const [stdout, stderr] = [new Stream(columns !== undefined, columns), new Stream(columns !== undefined, columns)];
  if (input !== undefined) stdin.end(input);
  const terminal: Terminal = {
    ...{ stdin, stdout, stderr, clock, version: '1.2.3' },
    env: { HOME: '/nowhere', ...env },
    interruption: () => interruption ?? new AbortController().signal,
    onEnd: () => () => undefined,
  };
  const status = await runCommandLine(args, terminal);
  return { status, stdout: stdout.text, stderr: stderr.text };
}

/** Without what colours it. */
export const bare = (text: string): string => stripVTControlCharacters(text);
