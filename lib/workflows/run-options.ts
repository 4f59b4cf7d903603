import { ceilSeconds } from '../clock.js';
import { type Duration, parseDuration } from '../duration.js';
import { refuseMarks } from '../enqueue/linked-task.js';
import { InvalidWorkflowError } from '../errors.js';
import { FOREIGN } from '../foreign-names.js';
import { readRetention } from '../links/done-options.js';
import { describe, refuseBraces, rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';
import { requireRunId } from './names.js';
import { RUN_OPTION_NAMES, type RunOptions, type StartOptions } from './types.js';

/** How long an ended run is kept. */
const DEFAULT_RETENTION_SECONDS = 7 * 86_400;

const Failure = InvalidWorkflowError;

/**
 * @param what the owner of the options, for messages
 * @throws InvalidWorkflowError
 */
export function checkRunOptions(options: RunOptions, what: string): Readonly<RunOptions> {
  requireObject(options, `options of ${what}`, Failure);
  rejectUnknownKeys(options, RUN_OPTION_NAMES, `option of ${what}:`, Failure, FOREIGN.start);
  checkValues(options, what);
  return Object.freeze({ ...options });
}

/** @throws InvalidWorkflowError */
export function checkStartOptions(options: StartOptions): void {
  requireObject(options, 'options of start', Failure);
  rejectUnknownKeys(options, [...RUN_OPTION_NAMES, 'id'], 'option of start:', Failure, FOREIGN.start);
  if (options.id !== undefined) requireRunId(options.id);
  checkValues(options, 'start');
}

function checkValues({ queue, retention, timeout }: RunOptions, what: string): void {
  if (queue !== undefined) requireRunQueue(queue, what);
  if (retention !== undefined) readRetention(retention, `retention of ${what}`, Failure);
  if (timeout !== undefined) requirePositive(timeout, `timeout of ${what}`);
}

/** @throws InvalidWorkflowError */
export function requireRunQueue(queue: string, what: string): string {
  const name = requireNonBlank(queue, `queue of ${what}`, Failure);
  refuseMarks(name, `queue of ${what}`, Failure);
  return refuseBraces(name, `queue of ${what}`, Failure);
}

function requirePositive(duration: Duration, name: string): number {
  const milliseconds = parseDuration(duration, name, Failure);
  if (milliseconds > 0) return milliseconds;
  throw new Failure(`${name} must be longer than 0, not ${describe(duration)}`);
}

/** @returns seconds */
export const retentionOf = (retention: Duration | undefined): number =>
  retention === undefined ? DEFAULT_RETENTION_SECONDS : ceilSeconds(parseDuration(retention, 'retention'));

/**
 * @param now milliseconds since the epoch
 * @returns Unix seconds
 */
export const deadlineOf = (timeout: Duration | undefined, now: number): number | undefined =>
  timeout === undefined ? undefined : ceilSeconds(now + parseDuration(timeout, 'timeout'));
