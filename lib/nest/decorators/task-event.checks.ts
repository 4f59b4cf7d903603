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
    throw new Failure(unknownEvent(what, describe(name), remedyFor(name)));
  }
  return [...new Set(names)];
}

function remedyFor(name: unknown): string {
  const known = `events are ${TASK_EVENT_NAMES.join(', ')}`;
  if (typeof name !== 'string') return known;
  if (Object.hasOwn(ELSEWHERE, name)) return ELSEWHERE[name]!;
  const near = (Object.hasOwn(FOREIGN, name) ? FOREIGN[name] : nearest(name, TASK_EVENT_NAMES)) ?? sameStem(name);
  return near ? `did you mean "${near}"?` : known;
}

/** What events of other libraries are called here. */
const FOREIGN: Readonly<Record<string, TaskEventName>> = {
  completed: 'succeeded',
  active: 'started',
  waiting: 'enqueued',
  added: 'enqueued',
  stalled: 'failed',
  'retries-exhausted': 'archived',
};

const gone = 'who deletes a task by AsynqInspector knows it from the call';
const merged = 'what enqueue returns has created: false then';
const paused = 'AsynqInspector.getQueueInfo() has paused';
const ofServer = 'AsynqServer.events has the events of a server';

/** Events of workers and queues of other libraries that are no events of tasks here, and where to look instead. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  progress: 'a caller follows the progress of a task with asynq.follow(info)',
  drained: 'put the tasks into a batch, which has an end, or ask AsynqInspector.getQueueInfo()',
  delayed: '"enqueued" has info.state, which is "scheduled" then; "retried" is for one that failed',
  'waiting-children': '"enqueued" has info.state, which is "waiting" then',
  removed: gone,
  cleaned: gone,
  deduplicated: merged,
  debounced: merged,
  duplicated: merged,
  lockRenewalFailed: 'it is "lost" when another server has taken over the task',
  error: `${ofServer}; "failed" is that of a task`,
  closing: ofServer,
  closed: ofServer,
  ready: ofServer,
  paused,
  resumed: paused,
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
