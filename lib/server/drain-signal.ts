import { constants } from 'node:os';
import { InvalidOptionError } from '../errors.js';
import { describe, nearest } from '../validation.js';

/** They end the process, also through Nest's `enableShutdownHooks()`, or cannot be caught. */
const RESERVED: readonly string[] = [
  'SIGKILL',
  'SIGSTOP',
  'SIGTERM',
  'SIGINT',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR2',
  'SIGILL',
  'SIGTRAP',
  'SIGABRT',
  'SIGIOT',
  'SIGBUS',
  'SIGFPE',
  'SIGSEGV',
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

/** What each signal calls. */
const listeners = new Map<NodeJS.Signals, Set<() => void>>();

/**
 * Calls `listener` on a signal. The process itself keeps listening when the last one has gone: a
 * SIGTSTP during the last hooks of a shutdown would stop the process, and then not even SIGTERM
 * ends it.
 *
 * @returns a function that removes the listener
 */
export function onSignal(signal: NodeJS.Signals | undefined, listener: () => void): () => void {
  if (signal === undefined) return () => undefined;
  const all = listeners.get(signal) ?? listenTo(signal);
  all.add(listener);
  return () => void all.delete(listener);
}

function listenTo(signal: NodeJS.Signals): Set<() => void> {
  const all = new Set<() => void>();
  listeners.set(signal, all);
  process.on(signal, () => all.forEach((listener) => listener()));
  return all;
}
