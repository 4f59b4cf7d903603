import type { TaskOutcomeKind } from '../events/events.js';
import type { TaskContext } from '../task/context.js';
import type { TaskMessage } from '../wire/message.js';

/** What is traced of one attempt. */
export interface TracedTask extends TaskContext {
  /** When it was taken from its queue, in milliseconds since the epoch. */
  readonly startedAt: number;
}

/**
 * How traces are made of what client, scheduler and server do. They know nothing of whoever makes them, and where nobody does, they pay
 * for the question only. No method throws; what answers `undefined` is not traced.
 */
export interface Tracing {
  /** A task is about to be stored, by what is going on. */
  startEnqueue(message: TaskMessage): EnqueueSpan | undefined;
  /** A task is about to be stored because it is time for it: whatever is going on, or was when the timer was set, has no part in it. */
  startScheduledEnqueue(message: TaskMessage): EnqueueSpan | undefined;
  /** Tasks are about to be stored together; `queue` is given when it is the same for all. */
  startEnqueueMany(count: number, queue: string | undefined): EnqueueSpan | undefined;
  /** A handler is about to be called. */
  startProcess(task: TracedTask): ProcessSpan | undefined;
  /** The tasks of a group are about to be made into one. */
  startAggregate(queue: string, group: string, members: readonly TaskMessage[]): ProcessSpan | undefined;
}

/** The storing of a task, or of several. What stores nothing, for somebody else did, is never ended, and so leaves no trace. */
export interface EnqueueSpan {
  /** The message with what carries the trace on; headers it has win. */
  inject(message: TaskMessage): TaskMessage;
  /** @param failed of several tasks, how many were not stored; `error` is of the first of them */
  end(error?: unknown, failed?: number): void;
}

/** The work on a task. */
export interface ProcessSpan {
  /** Runs the work so that what it does, and awaits, belongs to the trace. */
  run<T>(work: () => T): T;
  /** The first call counts. */
  end(outcome: TaskOutcomeKind, error?: unknown): void;
}
