import { constants } from 'node:os';
import { InvalidOptionError } from '../errors.js';
import { describe, nearest } from '../validation.js';

/**
 * These end the process, or cannot be heard. Those but two Nest's `enableShutdownHooks()` takes for
 * the end as well, unless it is told which.
 */
const RESERVED: readonly string[] = [
  ...['SIGKILL', 'SIGSTOP', 'SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'],
  ...['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGIOT', 'SIGBUS', 'SIGFPE', 'SIGSEGV'],
];

/** @throws InvalidOptionError */
export function checkDrainSignal(signal: unknown): NodeJS.Signals | undefined {
  if (signal === undefined) return undefined;
  if (typeof signal !== 'string' || !Object.hasOwn(constants.signals, signal)) {
    const near = typeof signal === 'string' ? nearest(signal, Object.keys(constants.signals)) : undefined;
    const hint = near ? `; did you mean "${near}"?` : '';
    throw new InvalidOptionError(`drainSignal must name a signal, such as "SIGTSTP", not ${describe(signal)}${hint}`);
  }
  if (RESERVED.includes(signal)) {
    throw new InvalidOptionError(
      `drainSignal must not be "${signal}", which ends or stops the process, or has Nest's enableShutdownHooks() end it; take "SIGTSTP"`,
    );
  }
  return signal as NodeJS.Signals;
}

/** Whom each signal drains. */
const heardBy = new Map<NodeJS.Signals, Set<() => void>>();

/**
 * Once it is listened to, a signal is so until the process ends, whoever is left to hear it: else
 * SIGTSTP, coming while the last hooks of a shutdown run, would stop the process, which then does
 * not even end by SIGTERM.
 *
 * @returns a function that ends it
 */
export function onSignal(signal: NodeJS.Signals | undefined, heard: () => void): () => void {
  if (signal === undefined) return () => undefined;
  const all = heardBy.get(signal) ?? listenTo(signal);
  all.add(heard);
  return () => void all.delete(heard);
}

function listenTo(signal: NodeJS.Signals): Set<() => void> {
  const all = new Set<() => void>();
  heardBy.set(signal, all);
  process.on(signal, () => all.forEach((heard) => heard()));
  return all;
}
