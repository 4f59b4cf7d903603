#!/usr/bin/env node
import { readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SystemClock } from '../clock.js';
import { runCommandLine, EXIT_STATUS } from './run.js';
import type { Terminal } from './output/terminal.js';

/* The command `nestjs-asynq`: gives one run this process as its terminal. */

/** Finds package.json from the path of the program, dist/cli/main.js. */
function ownVersion(): string {
  const manifest = join(dirname(realpathSync(process.argv[1]!)), '..', '..', 'package.json');
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}

const interruption = new AbortController();
let stopsByItself = false;
process.on('SIGINT', () => {
  if (interruption.signal.aborted || !stopsByItself) {
    if (process.stderr.isTTY) process.stderr.write('\n'); // after the ^C
    process.exit(EXIT_STATUS.interrupted);
  }
  interruption.abort();
});

/** Signals whose default action ends a process without an `exit` event, with their numbers. */
const FATAL_SIGNALS = { SIGHUP: 1, SIGTERM: 15 } as const;

function onEnd(undo: () => void): () => void {
  const stop = (signal: keyof typeof FATAL_SIGNALS): void => process.exit(128 + FATAL_SIGNALS[signal]);
  process.on('exit', undo);
  for (const signal of Object.keys(FATAL_SIGNALS)) process.on(signal, stop);
  return () => {
    process.off('exit', undo);
    for (const signal of Object.keys(FATAL_SIGNALS)) process.off(signal, stop);
  };
}

/** The reader of our output may close it early (`| head`): the command goes on. Any other failure ends it. */
function onOutputError(output: NodeJS.WriteStream, error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return;
  if (output === process.stdout) process.stderr.write(`error: cannot write the output: ${error.message}\n`);
  process.exit(EXIT_STATUS.failed);
}
for (const output of [process.stdout, process.stderr]) output.on('error', (error) => onOutputError(output, error));

const terminal: Terminal = {
  get stdin() {
    return process.stdin;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  clock: new SystemClock(),
  version: ownVersion(),
  interruption: () => {
    stopsByItself = true;
    return interruption.signal;
  },
  onEnd,
};

process.exitCode = await runCommandLine(process.argv.slice(2), terminal);
