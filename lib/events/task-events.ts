import type { TaskInfo } from '../task/info.js';
import type {
  AsynqEventMap,
  AsynqEventName,
  AsynqEvents,
  EndedWait,
  FinishedStep,
  TaskOutcome,
  TaskOutcomeKind,
  TaskRef,
} from './events.js';

/** One attempt. */
export interface TaskAttempt {
  /** Failures before this attempt. */
  readonly retried: number;
  readonly maxRetry: number;
  /** Milliseconds the task was pending before the attempt; `undefined` if unknown. */
  readonly waited?: number;
}

/** An attempt whose outcome is stored. */
export interface EndedAttempt extends TaskAttempt {
  readonly outcome: TaskOutcomeKind;
  /** Milliseconds the handler ran; 0 when its server is gone. */
  readonly duration: number;
  /** What the handler returned. */
  readonly result?: unknown;
  /** What the handler threw, or why it was stopped. */
  readonly error?: unknown;
  /** When the task runs again, if it does. */
  readonly retryAt?: Date;
}

/** The events of tasks, by name, with what each has besides {@link TaskEventCommon}. */
export interface TaskEventMap {
  /** A new task is stored: by a client, a periodic task or an aggregator of this process. */
  enqueued: { readonly info: TaskInfo };
  /** A handler is about to be called. */
  started: TaskAttempt;
  /** A step of the handler has done something, or failed to; not one that was answered from what is stored. */
  stepFinished: FinishedStep;
  /** An attempt is over, whatever its outcome. */
  finished: EndedAttempt;
  /** The handler succeeded. */
  succeeded: EndedAttempt;
  /** An attempt failed; the task was retried or archived, see `outcome`. */
  failed: EndedAttempt;
  /** An attempt failed, and the task waits for the next one. */
  retried: EndedAttempt & { readonly retryAt: Date };
  /** The task was archived: no retries left, `SkipRetry`, or an invalid payload. */
  archived: EndedAttempt;
  /** The handler dropped the task with `RevokeTask`. */
  revoked: EndedAttempt;
  /** The handler postponed the task with `PostponeTask`. */
  postponed: EndedAttempt & { readonly retryAt: Date };
  /** The handler sleeps, or waits for a signal, in a step; `retryAt`: until then at the latest. */
  suspended: EndedAttempt & { readonly retryAt: Date };
  /** The server shut down before the handler ended; the task is back at the front of its queue. */
  requeued: EndedAttempt;
  /** The lease was lost: another server has the task, and nothing is stored here. */
  lost: EndedAttempt;
  /** The task was cancelled while it ran; `outcome` is where it is now. */
  cancelled: EndedAttempt;
  /** The tasks of a group were aggregated into `task`. */
  aggregated: { readonly group: string; readonly size: number };
  /**
   * The task waits for other tasks no more, or, after `revived`, one that was cancelled runs after
   * all.
   */
  waitEnded: EndedWait;
}

export type TaskEventName = keyof TaskEventMap;

/** What every event has. */
export interface TaskEventCommon<E extends TaskEventName = TaskEventName> {
  readonly event: E;
  /** The name of the connection; `default` for the unnamed one. */
  readonly connection: string;
  readonly task: TaskRef;
}

/**
 * One event: `TaskEvent<'failed'>`, `TaskEvent<'started' | 'finished'>`; any event without a name.
 */
export type TaskEvent<E extends TaskEventName = TaskEventName> = {
  [N in E]: TaskEventCommon<N> & TaskEventMap[N];
}[E];

/** Which tasks a listener gets events of. */
export interface TaskEventFilter {
  /**
   * Task types or prefixes of them, as `@TaskHandler` reads them; a definition stands for its type.
   * Default: all.
   */
  type?: TaskTypeName | readonly TaskTypeName[];
  /** Names of queues. Default: all. */
  queue?: string | readonly string[];
}

type TaskTypeName = string | { readonly type: string };

type ServerEvent =
  | 'taskEnqueued'
  | 'taskStarted'
  | 'stepFinished'
  | 'taskFinished'
  | 'taskRecovered'
  | 'groupAggregated'
  | 'waitEnded';

const ENDED: readonly ServerEvent[] = ['taskFinished', 'taskRecovered'];

/** The server's events behind each event. */
const EMITTED_AS: { readonly [E in TaskEventName]: readonly ServerEvent[] } = {
  enqueued: ['taskEnqueued'],
  started: ['taskStarted'],
  stepFinished: ['stepFinished'],
  finished: ENDED,
  succeeded: ['taskFinished'],
  failed: ENDED,
  retried: ENDED,
  archived: ENDED,
  revoked: ['taskFinished'],
  postponed: ['taskFinished'],
  suspended: ['taskFinished'],
  requeued: ['taskFinished'],
  lost: ['taskFinished'],
  cancelled: ['taskFinished'],
  aggregated: ['groupAggregated'],
  waitEnded: ['waitEnded'],
};

export const TASK_EVENT_NAMES = Object.keys(EMITTED_AS) as TaskEventName[];

const BY_OUTCOME: { readonly [K in TaskOutcomeKind]: readonly TaskEventName[] } = {
  done: ['finished', 'succeeded'],
  completed: ['finished', 'succeeded'],
  retry: ['finished', 'failed', 'retried'],
  archived: ['finished', 'failed', 'archived'],
  revoked: ['finished', 'revoked'],
  postponed: ['finished', 'postponed'],
  suspended: ['finished', 'suspended'],
  requeued: ['finished', 'requeued'],
  lost: ['finished', 'lost'],
};

/**
 * Something that happened to a task. It has several names: an archived task has also failed and
 * finished.
 */
export interface TaskOccurrence {
  readonly names: readonly TaskEventName[];
  readonly task: TaskRef;
  readonly details: object;
}

/** Reads each event of a server. */
const TO_OCCURRENCE: { readonly [S in ServerEvent]: (event: AsynqEventMap[S]) => TaskOccurrence } = {
  taskEnqueued: ({ task }) => ({ names: ['enqueued'], task, details: { info: task } }),
  taskStarted: ({ task, ...details }) => ({ names: ['started'], task, details }),
  stepFinished: ({ task, ...details }) => ({ names: ['stepFinished'], task, details }),
  taskFinished: ({ task, ...details }) => ({ names: namesOf(details), task, details }),
  taskRecovered: ({ task, ...details }) => ({
    names: BY_OUTCOME[details.outcome],
    task,
    details: { ...details, duration: 0 },
  }),
  groupAggregated: ({ task, group, size }) => ({ names: ['aggregated'], task, details: { group, size } }),
  waitEnded: ({ task, ...details }) => ({ names: ['waitEnded'], task, details }),
};

function namesOf({ outcome, error }: Pick<TaskOutcome, 'outcome' | 'error'>): readonly TaskEventName[] {
  const cancelled = (error as { code?: unknown } | undefined | null)?.code === 'ASYNQ_TASK_CANCELED';
  return cancelled ? [...BY_OUTCOME[outcome], 'cancelled'] : BY_OUTCOME[outcome];
}

/**
 * Calls the listener for events of tasks, after they are stored: once for each of its names that
 * fits.
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

/**
 * Calls the listener once per occurrence that has any of these names.
 *
 * @returns a function that ends it
 */
export function onTaskOccurrences(
  events: AsynqEvents,
  names: readonly TaskEventName[],
  listener: (occurrence: TaskOccurrence) => void,
): () => void {
  const emit = (occurrence: TaskOccurrence): void => {
    if (occurrence.names.some((name) => names.includes(name))) listener(occurrence);
  };
  const emitted = new Set(names.flatMap((name) => EMITTED_AS[name]));
  const ends = [...emitted].map((name) =>
    events.on(name as AsynqEventName, (event) => emit(TO_OCCURRENCE[name](event as never))),
  );
  if (emitted.has('taskStarted') || emitted.has('taskFinished')) ends.push(events.measureWaits());
  return () => ends.forEach((end) => end());
}

/** The wanted ones among the names. */
export const wantedOf = <E extends TaskEventName>(names: readonly TaskEventName[], wanted: readonly E[]): E[] =>
  names.filter((name): name is E => (wanted as readonly TaskEventName[]).includes(name));

export const refTo = ({ id, type, queue }: TaskRef): TaskRef => ({ id, type, queue });

/** Returns a check whether a task fits the filter. */
export function matcher({ type, queue }: TaskEventFilter): (task: TaskRef) => boolean {
  const types = listOf(type)?.map((one) => (typeof one === 'string' ? one : one.type));
  const queues = listOf(queue);
  return (task) =>
    (!types || types.some((prefix) => task.type.startsWith(prefix))) && (!queues || queues.includes(task.queue));
}

const listOf = <T>(value: T | readonly T[] | undefined): readonly T[] | undefined =>
  value === undefined ? undefined : Array.isArray(value) ? (value as readonly T[]) : [value as T];
