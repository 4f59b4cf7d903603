import { constants } from 'node:os';
import { InvalidOptionError } from '../errors.js';
import { describe, nearest } from '../validation.js';

/** These end the process, or cannot be heard. */
const RESERVED: readonly string[] = ['SIGKILL', 'SIGSTOP', 'SIGTERM', 'SIGINT'];

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
      `drainSignal must not be "${signal}", which ends or stops the process; take "SIGTSTP"`,
    );
  }
  return signal as NodeJS.Signals;
}

/** @returns a function that ends it */
export function onSignal(signal: NodeJS.Signals | undefined, heard: () => void): () => void {
  if (signal === undefined) return () => undefined;
  process.on(signal, heard);
  return () => void process.off(signal, heard);
}
