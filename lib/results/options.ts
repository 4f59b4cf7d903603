import { type Duration, parseDuration } from '../duration.js';
import { InvalidTaskError } from '../errors.js';
import { TECHNICAL_RETENTION } from '../task/links.js';
import { describe, rejectUnknownKeys, requireObject } from '../validation.js';

const DEFAULT_TIMEOUT: Duration = '30s';
const DEFAULT_FOLLOW: Duration = '1h';
/** Who waits hears of the end within milliseconds; this is for a connection that is lost just then. */
const LEAST_RETENTION_SECONDS = 60;

/** How to wait for the result of a task. */
export interface ResultOptions {
  /** How long to wait at most. Default 30 seconds. The task goes on after that. */
  timeout?: Duration;
  /** Ends the wait: it rejects with the reason of the signal. The task goes on. */
  signal?: AbortSignal;
}

/** How to follow a task. */
export interface FollowOptions {
  /** How long at most. Default 1 hour. The task goes on after that. */
  timeout?: Duration;
}

/** After all checks; `timeout` in milliseconds. */
export interface ResultSettings {
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * @param what for messages, as in `call`
 * @throws InvalidTaskError
 */
export function readResultOptions(given: unknown, what: string): ResultSettings {
  const options: ResultOptions = requireObject(given, `options of ${what}`, InvalidTaskError);
  rejectUnknownKeys(options, ['timeout', 'signal'], `option of ${what}:`, InvalidTaskError);
  const timeout = parseDuration(options.timeout ?? DEFAULT_TIMEOUT, `timeout of ${what}`, InvalidTaskError);
  if (timeout <= 0) {
    throw new InvalidTaskError(`timeout of ${what} must be longer than 0, not ${describe(options.timeout)}`);
  }
  const { signal } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidTaskError(`signal of ${what} must be an AbortSignal, not ${describe(signal)}`);
  }
  return { timeout, signal };
}

/** @throws InvalidTaskError */
export function readFollowOptions(given: unknown): ResultSettings {
  const options: FollowOptions = requireObject(given, 'options of follow', InvalidTaskError);
  rejectUnknownKeys(options, ['timeout'], 'option of follow:', InvalidTaskError);
  return readResultOptions({ timeout: options.timeout ?? DEFAULT_FOLLOW }, 'follow');
}

/** Seconds that a task is kept after a success for somebody who waits that long. */
export function retentionFor(timeout: number): number {
  const seconds = Math.max(LEAST_RETENTION_SECONDS, Math.ceil(timeout / 1000) + 1);
  return seconds === TECHNICAL_RETENTION ? seconds + 1 : seconds;
}
