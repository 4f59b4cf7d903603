import type { Type } from '@nestjs/common';
import { parseDuration, type Duration } from '../../duration.js';
import { InvalidHandlerError } from '../../errors.js';
import type { TaskLimits } from '../../task/limits.js';
import { describe, rejectUnknownKeys, requireFunction, requireInteger, requireObject } from '../../validation.js';
import { neverFull, wrongWait } from '../names/nest.messages.js';

/** Makes a handler a batch handler: one call for many tasks. */
export interface BatchHandlerOptions {
  /** The most tasks of one call: 1 to 10,000. */
  size: number;
  /**
   * How long the first task of a call waits for others: up to 30 s. With 0, a call gets the tasks that were claimed together. The time
   * counts for the timeouts of the tasks. Default 200 ms.
   */
  wait?: Duration;
  /**
   * The class of one payload, for pipes that check classes, as ValidationPipe does: of the parameter they only know that it is an array.
   * Default: none.
   */
  items?: Type;
}

/** With every default applied. */
export interface ResolvedBatch {
  readonly size: number;
  /** Milliseconds. */
  readonly wait: number;
  readonly items: Type | undefined;
}

const KNOWN = ['size', 'wait', 'items'] as const satisfies readonly (keyof BatchHandlerOptions)[];
const SIZE = { least: 1, most: 10_000 };
const DEFAULT_WAIT_MS = 200;
/** As long as a lease: nobody should wait for others until a crash would be noticed. */
const MAX_WAIT_MS = 30_000;

/** @throws InvalidHandlerError */
export function resolveBatch(given: unknown, limits: TaskLimits | undefined, what: string): ResolvedBatch {
  const name = `batch of ${what}`;
  const options = requireObject(given, `${name}, as in { size: 100, wait: '200ms' },`, InvalidHandlerError);
  rejectUnknownKeys(options, KNOWN, `option of ${name}`, InvalidHandlerError);
  const { size, wait = DEFAULT_WAIT_MS, items } = options as Partial<BatchHandlerOptions>;
  const checked = requireInteger(size, `size of ${name}`, InvalidHandlerError, SIZE);
  const milliseconds = parseDuration(wait, `wait of ${name}`, InvalidHandlerError);
  if (milliseconds < 0 || milliseconds > MAX_WAIT_MS) throw new InvalidHandlerError(wrongWait(name, describe(wait)));
  if (items !== undefined) requireFunction(items, `items of ${name} (the class of one payload)`, InvalidHandlerError);
  for (const limit of ['concurrency', 'globalConcurrency'] as const) {
    const most = limits?.[limit];
    if (most !== undefined && most < checked) throw new InvalidHandlerError(neverFull(what, limit, most, checked));
  }
  return { size: checked, wait: milliseconds, items };
}
