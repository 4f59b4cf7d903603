import { InvalidOptionError } from '../../errors.js';
import type { TaskEventName } from '../../events/task-events.js';
import { rejectUnknownKeys, requireInteger, requireObject } from '../../validation.js';
import { checkEventNames } from './task-event.checks.js';

export interface EventStreamOptions {
  /** About how many events the stream keeps in Redis, from 100 to 1,000,000. Default 10,000: a few megabytes. */
  maxLength?: number;
  /** What is told to the fleet. Default `['finished']`: every attempt that is over, whatever its outcome. */
  events?: readonly TaskEventName[];
}

/** `undefined`: nothing is streamed. @throws InvalidOptionError */
export function resolveEventStream(given: unknown): Required<EventStreamOptions> | undefined {
  if (given === undefined || given === false) return undefined;
  const what = 'AsynqModule option eventStream';
  const options: EventStreamOptions = given === true ? {} : requireObject(given, what, InvalidOptionError);
  rejectUnknownKeys(options, ['maxLength', 'events'], `key of ${what}:`, InvalidOptionError);
  const { maxLength = 10_000, events = ['finished'] } = options;
  requireInteger(maxLength, `${what}.maxLength`, InvalidOptionError, { least: 100, most: 1_000_000 });
  return { maxLength, events: checkEventNames(events, `${what}.events`, InvalidOptionError) };
}
