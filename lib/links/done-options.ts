import { type Duration, parseDuration } from '../duration.js';
import { type ErrorClass, InvalidOptionError } from '../errors.js';
import { describe, rejectUnknownKeys, requireObject } from '../validation.js';

const DEFAULT_TIMEOUT: Duration = '1h';
/** `done` asks once a second: what has ended must be there for longer. */
const LEAST_RETENTION_MS = 5_000;

/** How to wait for the end of a run or a batch. */
export interface DoneOptions {
  /** How long to wait at most. Default 1 hour. */
  timeout?: Duration;
}

/**
 * Returns the timeout in milliseconds.
 *
 * @param instead what to call to wait for nothing
 * @throws InvalidOptionError
 */
export function timeoutOfDone(options: DoneOptions, instead: string): number {
  requireObject(options, 'options of done', InvalidOptionError);
  rejectUnknownKeys(options, ['timeout'], 'option of done:', InvalidOptionError);
  const timeout = parseDuration(options.timeout ?? DEFAULT_TIMEOUT, 'timeout of done', InvalidOptionError);
  if (timeout > 0) return timeout;
  throw new InvalidOptionError(
    `timeout of done must be longer than 0, not ${describe(options.timeout)}; ${instead} returns what is known now`,
  );
}

/**
 * Checks how long a run or a batch is kept after its end. Returns milliseconds.
 *
 * @throws `Failure`
 */
export function readRetention(value: unknown, name: string, Failure: ErrorClass): number {
  const milliseconds = parseDuration(value, name, Failure);
  if (milliseconds >= LEAST_RETENTION_MS) return milliseconds;
  throw new Failure(`${name} must be at least 5 seconds, not ${describe(value)}: who waits for the end must see it`);
}
