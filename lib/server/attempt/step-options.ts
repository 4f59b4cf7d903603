import { parseDuration } from '../../duration.js';
import { InvalidStepError } from '../../errors.js';
import { requireStepName } from '../../task/signal.js';
import type { EachOptions, StepRunOptions, StepRetry, WaitForOptions } from '../../task/steps.js';
import { describe, rejectUnknownKeys, requireFunction, requireObject } from '../../validation.js';

const DEFAULT_TIMEOUT = '7d';
const DEFAULT_DELAY = '1s';
const DEFAULT_EVERY = '1s';

const Failure = InvalidStepError;

/** Names of compensations and of records of the engine begin so. */
const RESERVED = /^(!|undo:)/;

export function requireName(name: unknown): string {
  const checked = requireStepName(name, 'name of a step', Failure);
  if (!RESERVED.test(checked)) return checked;
  throw new Failure(
    `name of a step ${describe(name)} must not begin with ! or undo:, as the names of compensations do`,
  );
}

/** @throws InvalidStepError */
export function readRun(step: string, given: unknown): StepRunOptions {
  const options = requireObject(given, `options of step "${step}"`, Failure) as StepRunOptions;
  rejectUnknownKeys(options, ['retry', 'undo'], `option of step "${step}"`, Failure);
  if (options.undo !== undefined) requireFunction(options.undo, `undo of step "${step}"`, Failure);
  if (options.retry !== undefined) checkRetry(step, options.retry);
  return options;
}

function checkRetry(step: string, given: unknown): void {
  const { max, delay = DEFAULT_DELAY, ...rest } = requireObject(given, `retry of step "${step}"`, Failure) as StepRetry;
  rejectUnknownKeys(rest, ['max', 'delay'], `option of retry of step "${step}"`, Failure);
  if (!Number.isSafeInteger(max) || max < 0) {
    throw new Failure(`max of retry of step "${step}" must be a whole number from 0 on, not ${describe(max)}`);
  }
  if (typeof delay !== 'function') requireDelay(step, delay);
}

/** Milliseconds until the next try. @param tries how many have failed */
export function retryDelay(step: string, { delay = DEFAULT_DELAY }: StepRetry, tries: number, error: unknown): number {
  return requireDelay(step, typeof delay === 'function' ? delay(tries, error) : delay);
}

function requireDelay(step: string, delay: unknown): number {
  const milliseconds = parseDuration(delay, `delay of retry of step "${step}"`, Failure);
  if (milliseconds >= 0) return milliseconds;
  throw new Failure(`delay of retry of step "${step}" must be at least 0, not ${describe(delay)}`);
}

export function readWait(
  step: string,
  signal: unknown,
  options: unknown,
): { milliseconds: number; signalName: string } {
  const { name } = requireObject(signal, `signal of step "${step}"`, Failure) as { name?: unknown };
  const given = requireObject(options, `options of step "${step}"`, Failure) as WaitForOptions;
  rejectUnknownKeys(given, ['timeout'], `option of step "${step}"`, Failure);
  const { timeout = DEFAULT_TIMEOUT } = given;
  return {
    signalName: requireStepName(name, 'name of a signal', Failure),
    milliseconds: parseDuration(timeout, `timeout of step "${step}"`, Failure),
  };
}

export interface EachSettings {
  readonly from: unknown;
  readonly cursor: ((row: unknown) => unknown) | undefined;
  /** Milliseconds. */
  readonly every: number;
}

/** @param isGiven the rows come from a function */
export function readEach(step: string, given: unknown, isGiven: boolean): EachSettings {
  const options = requireObject(given, `options of step "${step}"`, Failure) as EachOptions;
  rejectUnknownKeys(options, ['from', 'cursor', 'every'], `option of step "${step}"`, Failure);
  const { from, cursor, every = DEFAULT_EVERY } = options;
  if (cursor !== undefined) requireFunction(cursor, `cursor of step "${step}"`, Failure);
  if (!isGiven && (cursor !== undefined || from !== undefined)) {
    throw new Failure(
      `from and cursor of step "${step}" are for rows that a function gives: (from) => rows; an iterable is counted`,
    );
  }
  return {
    from,
    cursor: cursor as EachSettings['cursor'],
    every: parseDuration(every, `every of step "${step}"`, Failure),
  };
}
