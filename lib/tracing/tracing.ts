import type { StepOutcomeKind, TaskOutcomeKind } from '../events/events.js';
import type { TaskContext } from '../task/context.js';
import type { TaskMessage } from '../wire/message.js';

/** An attempt as traces show it. */
export interface TracedTask extends TaskContext {
  /** When it was claimed, in milliseconds since the epoch. */
  readonly startedAt: number;
}

/**
 * Creates the spans of client, scheduler and server. These do not know who implements it; without
 * an implementation they pay for one check only. No method throws; `undefined` means that there is
 * no span.
 */
export interface Tracing {
  /** A task is about to be stored, within the active context. */
  startEnqueue(message: TaskMessage): EnqueueSpan | undefined;
  /**
   * A task is about to be stored at its planned time; the active context, or that of the timer, is
   * not its parent.
   */
  startScheduledEnqueue(message: TaskMessage): EnqueueSpan | undefined;
  /**
   * Several tasks are about to be stored. `count` is set if it is known, `queue` if it is the same
   * for all.
   */
  startEnqueueMany(count: number | undefined, queue: string | undefined): EnqueueSpan | undefined;
  /** A handler is about to be called. */
  startProcess(task: TracedTask): ProcessSpan | undefined;
  /** A batch handler is about to be called. */
  startProcessBatch(tasks: readonly TracedTask[]): BatchSpan | undefined;
  /** The tasks of a group are about to be aggregated. */
  startAggregate(queue: string, group: string, members: readonly TaskMessage[]): ProcessSpan | undefined;
}

/**
 * The span of storing one or more tasks. If another process stored the task, it is never ended, and
 * so not exported.
 */
export interface EnqueueSpan {
  /** Returns the message with the headers that carry the trace; headers it already has are kept. */
  inject(message: TaskMessage): TaskMessage;
  /** @param failed how many of several tasks were not stored; `error` is of the first of them */
  end(error?: unknown, failed?: number): void;
}

/** The span of the work on a task. */
export interface ProcessSpan {
  /** Runs the work in the context of the span, with everything it awaits. */
  run<T>(work: () => T): T;
  /** A step of the handler begins to do something. */
  startStep(step: { readonly name: string; readonly kind: string }): StepSpan | undefined;
  /** Ends the span. Only the first call counts. */
  end(outcome: TaskOutcomeKind, error?: unknown): void;
}

/** The span of a step of a handler, in that of the attempt. */
export interface StepSpan {
  /** Runs the work in the context of the span, with everything it awaits. */
  run<T>(work: () => T): T;
  end(outcome: StepOutcomeKind, error?: unknown): void;
}

/** The span of one call of a batch handler. */
export interface BatchSpan {
  /** Runs the work in the context of the span, with everything it awaits. */
  run<T>(work: () => T): T;
  /** A part per task, in their order. The span ends when all have ended. */
  readonly ofTasks: readonly ProcessSpan[];
}
