import type { TaskInfo } from '../task/info.js';
import type { AsynqEventMap, AsynqEventName, AsynqEvents, TaskOutcome, TaskOutcomeKind, TaskRef } from './events.js';

/** What is known of one attempt. */
export interface TaskAttempt {
  /** Failures before this attempt. */
  readonly retried: number;
  readonly maxRetry: number;
  /** Milliseconds the task was pending before the attempt; `undefined` when that is not known. */
  readonly waited?: number;
}

/** An attempt whose outcome is stored. */
export interface EndedAttempt extends TaskAttempt {
  readonly outcome: TaskOutcomeKind;
  /** Milliseconds the handler ran; 0 when the server that ran it went away. */
  readonly duration: number;
  /** What the handler returned. */
  readonly result?: unknown;
  /** What the handler threw, or why it was stopped. */
  readonly error?: unknown;
  /** When the task runs again, if it does. */
  readonly retryAt?: Date;
}

/** What happens to tasks, by name, with what is told of it besides {@link TaskEventCommon}. */
export interface TaskEventMap {
  /** A new task is stored: by a client, a periodic task or an aggregator of this process. */
  enqueued: { readonly info: TaskInfo };
  /** A handler is about to be called. */
  started: TaskAttempt;
  /** An attempt is over, whatever its outcome. */
  finished: EndedAttempt;
  /** The handler succeeded. */
  succeeded: EndedAttempt;
  /** An attempt failed; the task was retried or archived, see `outcome`. */
  failed: EndedAttempt;
  /** An attempt failed, and the task waits for the next one. */
  retried: EndedAttempt & { readonly retryAt: Date };
  /** The task was given up: no retries left, `SkipRetry`, or a payload that does not fit. */
  archived: EndedAttempt;
  /** The handler dropped the task with `RevokeTask`. */
  revoked: EndedAttempt;
  /** The handler put the task off with `PostponeTask`. */
  postponed: EndedAttempt & { readonly retryAt: Date };
  /** The server ended before the handler; the task is back at the front of its queue. */
  requeued: EndedAttempt;
  /** The lease was lost: another server has the task, and nothing was stored here. */
  lost: EndedAttempt;
  /** The task was cancelled while it ran; what became of it says `outcome`. */
  cancelled: EndedAttempt;
  /** The tasks of a group have become `task`. */
  aggregated: { readonly group: string; readonly size: number };
}

export type TaskEventName = keyof TaskEventMap;

/** What every event tells. */
export interface TaskEventCommon<E extends TaskEventName = TaskEventName> {
  readonly event: E;
  /** The name of the connection; `default` for the one without. */
  readonly connection: string;
  readonly task: TaskRef;
}

/** One event: `TaskEvent<'failed'>`, `TaskEvent<'started' | 'finished'>`; without names, any. */
export type TaskEvent<E extends TaskEventName = TaskEventName> = {
  [N in E]: TaskEventCommon<N> & TaskEventMap[N];
}[E];

/** Which tasks events are wanted of. */
export interface TaskEventFilter {
  /** Task types or prefixes of them, as `@TaskHandler` reads them; a definition stands for its type. Default: all. */
  type?: TaskTypeName | readonly TaskTypeName[];
  /** Names of queues. Default: all. */
  queue?: string | readonly string[];
}

type TaskTypeName = string | { readonly type: string };

type ServerEvent = 'taskEnqueued' | 'taskStarted' | 'taskFinished' | 'taskRecovered' | 'groupAggregated';

const ENDED: readonly ServerEvent[] = ['taskFinished', 'taskRecovered'];

/** Where each event comes from. */
const EMITTED_AS: { readonly [E in TaskEventName]: readonly ServerEvent[] } = {
  enqueued: ['taskEnqueued'],
  started: ['taskStarted'],
  finished: ENDED,
  succeeded: ['taskFinished'],
  failed: ENDED,
  retried: ENDED,
  archived: ENDED,
  revoked: ['taskFinished'],
  postponed: ['taskFinished'],
  requeued: ['taskFinished'],
  lost: ['taskFinished'],
  cancelled: ['taskFinished'],
  aggregated: ['groupAggregated'],
};

export const TASK_EVENT_NAMES = Object.keys(EMITTED_AS) as TaskEventName[];

const BY_OUTCOME: { readonly [K in TaskOutcomeKind]: readonly TaskEventName[] } = {
  done: ['finished', 'succeeded'],
  completed: ['finished', 'succeeded'],
  retry: ['finished', 'failed', 'retried'],
  archived: ['finished', 'failed', 'archived'],
  revoked: ['finished', 'revoked'],
  postponed: ['finished', 'postponed'],
  requeued: ['finished', 'requeued'],
  lost: ['finished', 'lost'],
};

/** What happened once, by what is told of it, and the names it goes by. */
export interface TaskOccurrence {
  readonly names: readonly TaskEventName[];
  readonly task: TaskRef;
  readonly details: object;
}

/** How each event of a server is read. */
const TO_OCCURRENCE: { readonly [S in ServerEvent]: (event: AsynqEventMap[S]) => TaskOccurrence } = {
  taskEnqueued: ({ task }) => ({ names: ['enqueued'], task, details: { info: task } }),
  taskStarted: ({ task, ...details }) => ({ names: ['started'], task, details }),
  taskFinished: ({ task, ...details }) => ({ names: namesOf(details), task, details }),
  taskRecovered: ({ task, ...details }) => ({
    names: BY_OUTCOME[details.outcome],
    task,
    details: { ...details, duration: 0 },
  }),
  groupAggregated: ({ task, group, size }) => ({ names: ['aggregated'], task, details: { group, size } }),
};

function namesOf({ outcome, error }: Pick<TaskOutcome, 'outcome' | 'error'>): readonly TaskEventName[] {
  const cancelled = (error as { code?: unknown } | undefined | null)?.code === 'ASYNQ_TASK_CANCELED';
  return cancelled ? [...BY_OUTCOME[outcome], 'cancelled'] : BY_OUTCOME[outcome];
}

/**
 * Calls back for events of tasks, after they have been stored. A listener of several names is called once for each that fits.
 *
 * @returns a function that ends it
 */
export function onTaskEvents<E extends TaskEventName>(
  events: AsynqEvents,
  connection: string,
  names: readonly E[],
  filter: TaskEventFilter,
  listener: (event: TaskEvent<E>) => void,
): () => void {
  const fits = matcher(filter);
  return onTaskOccurrences(events, names, ({ names: all, task, details }) => {
    if (!fits(task)) return;
    for (const event of wantedOf(all, names)) {
      listener({ event, connection, task: refTo(task), ...details } as unknown as TaskEvent<E>);
    }
  });
}

/** The same, once for each thing that happened by any of these names. */
export function onTaskOccurrences(
  events: AsynqEvents,
  names: readonly TaskEventName[],
  listener: (occurrence: TaskOccurrence) => void,
): () => void {
  const tell = (occurrence: TaskOccurrence): void => {
    if (occurrence.names.some((name) => names.includes(name))) listener(occurrence);
  };
  const sources = new Set(names.flatMap((name) => EMITTED_AS[name]));
  const ends = [...sources].map((source) =>
    events.on(source as AsynqEventName, (event) => tell(TO_OCCURRENCE[source](event as never))),
  );
  if (sources.has('taskStarted') || sources.has('taskFinished')) ends.push(events.measureWaits());
  return () => ends.forEach((end) => end());
}

/** Those of the names that are wanted. */
export const wantedOf = <E extends TaskEventName>(names: readonly TaskEventName[], wanted: readonly E[]): E[] =>
  names.filter((name): name is E => (wanted as readonly TaskEventName[]).includes(name));

export const refTo = ({ id, type, queue }: TaskRef): TaskRef => ({ id, type, queue });

/** Whether a task is one that is asked for. */
export function matcher({ type, queue }: TaskEventFilter): (task: TaskRef) => boolean {
  const types = listOf(type)?.map((one) => (typeof one === 'string' ? one : one.type));
  const queues = listOf(queue);
  return (task) =>
    (!types || types.some((prefix) => task.type.startsWith(prefix))) && (!queues || queues.includes(task.queue));
}

const listOf = <T>(value: T | readonly T[] | undefined): readonly T[] | undefined =>
  value === undefined ? undefined : Array.isArray(value) ? (value as readonly T[]) : [value as T];
