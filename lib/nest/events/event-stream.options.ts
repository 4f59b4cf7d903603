import { InvalidOptionError } from '../../errors.js';
import type { TaskEventName } from '../../events/task-events.js';
import { rejectUnknownKeys, requireInteger, requireObject } from '../../validation.js';
import { checkEventNames } from '../decorators/task-event.checks.js';

export interface EventStreamOptions {
  /** How many events the stream keeps in Redis, approximately, from 100 to 1,000,000. Default 10,000: a few megabytes. */
  maxLength?: number;
  /** The events to write. Default `['finished']`: every finished attempt with its outcome. */
  events?: readonly TaskEventName[];
}

/** Returns `undefined` if nothing is streamed. @throws InvalidOptionError */
export function resolveEventStream(given: unknown): Required<EventStreamOptions> | undefined {
  if (given === undefined || given === false) return undefined;
  const what = 'AsynqModule option eventStream';
  const options: EventStreamOptions = given === true ? {} : requireObject(given, what, InvalidOptionError);
  rejectUnknownKeys(options, ['maxLength', 'events'], `key of ${what}:`, InvalidOptionError);
  const { maxLength = 10_000, events = ['finished'] } = options;
  requireInteger(maxLength, `${what}.maxLength`, InvalidOptionError, { least: 100, most: 1_000_000 });
  return { maxLength, events: checkEventNames(events, `${what}.events`, InvalidOptionError) };
}
