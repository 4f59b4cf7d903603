import { type ErrorClass, InvalidHandlerError } from '../../errors.js';
import { TASK_EVENT_NAMES, type TaskEventFilter, type TaskEventName } from '../../events/task-events.js';
import { describe, nearest, requireNonBlank } from '../../validation.js';
import { noEvents, unknownEvent } from '../names/nest.messages.js';

/** @param what names the caller in the message @throws `Failure` for no name, and for an unknown one */
export function checkEventNames<E extends TaskEventName>(
  given: E | readonly E[],
  what: string,
  Failure: ErrorClass = InvalidHandlerError,
): readonly E[] {
  const names: readonly E[] = Array.isArray(given) ? given : [given];
  if (names.length === 0) throw new Failure(noEvents(what));
  for (const name of names as readonly unknown[]) {
    if ((TASK_EVENT_NAMES as readonly unknown[]).includes(name)) continue;
    const near =
      typeof name === 'string' ? (FOREIGN[name] ?? nearest(name, TASK_EVENT_NAMES) ?? sameStem(name)) : undefined;
    throw new Failure(unknownEvent(what, describe(name), near, TASK_EVENT_NAMES.join(', ')));
  }
  return [...new Set(names)];
}

/** What events of other libraries are called here. */
const FOREIGN: Readonly<Record<string, TaskEventName>> = {
  completed: 'succeeded',
  active: 'started',
  waiting: 'enqueued',
  added: 'enqueued',
  stalled: 'failed',
  error: 'failed',
  removed: 'revoked',
};

/** The event with the same stem as another form of its word: `failure`, `retry`, `success`. */
const sameStem = (name: string): string | undefined =>
  name.length < 4 ? undefined : TASK_EVENT_NAMES.find((known) => known.startsWith(name.slice(0, 4).toLowerCase()));

/** @throws InvalidHandlerError */
export function checkEventFilter({ type, queue }: TaskEventFilter, what: string): void {
  for (const one of listed(type)) {
    const name = typeof one === 'object' && one !== null ? (one as { type?: unknown }).type : one;
    requireNonBlank(name, `${what}: type`, InvalidHandlerError);
  }
  for (const one of listed(queue)) requireNonBlank(one, `${what}: queue`, InvalidHandlerError);
}

const listed = (value: unknown): readonly unknown[] =>
  value === undefined ? [] : Array.isArray(value) ? (value as unknown[]) : [value];
