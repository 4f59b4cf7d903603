import type { Clock } from '../../clock.js';
import { hasCode } from '../../error-code.js';
import { LeaseExpiredError, ShutdownError } from '../../errors.js';
import type { AsynqEvents, StepOutcomeKind, StepWork } from '../../events/events.js';
import type { TaskRef } from '../../events/task-ref.js';
import type { ProcessSpan } from '../../tracing/tracing.js';

/** A step that does something in this attempt: one that is answered from what is stored is not observed. */
export interface ObservedStep {
  readonly name: string;
  readonly kind: StepWork;
}

/** Learns of the steps of one attempt. */
export interface StepObserver {
  /** A step begins, or another try of it; `undefined` when nobody wants to know. */
  begin(step: ObservedStep): StepObservation | undefined;
}

export interface StepObservation {
  /** Runs the work in the context of its trace. */
  run<T>(work: () => T): T;
  /** Its result is stored. */
  succeeded(): void;
  failed(error: unknown): void;
}

/** Does the work of a step, and tells the observer. */
export async function observed<T>(
  observer: StepObserver | undefined,
  step: ObservedStep,
  work: () => Promise<T>,
): Promise<T> {
  const seen = observer?.begin(step);
  if (!seen) return work();
  try {
    const value = await seen.run(work);
    seen.succeeded();
    return value;
  } catch (error) {
    seen.failed(error);
    throw error;
  }
}

/** What is observed of an attempt. */
export interface ObservedAttempt extends TaskRef {
  readonly span: ProcessSpan | undefined;
  /** Why the handler was asked to stop, if it was. */
  readonly aborted: Error | undefined;
}

export interface StepReportsDeps {
  readonly events: AsynqEvents;
  readonly clock: Clock;
}

/** Makes an event and a span of each step that does something. */
export class StepReports implements StepObserver {
  constructor(
    private readonly task: ObservedAttempt,
    private readonly deps: StepReportsDeps,
  ) {}

  begin(step: ObservedStep): StepObservation | undefined {
    const { events, clock } = this.deps;
    const span = this.task.span?.startStep(step);
    if (!span && !events.wants('stepFinished')) return undefined;
    const startedAt = clock.now();
    const end = (outcome: StepOutcomeKind, error?: unknown): void => {
      span?.end(outcome, error);
      this.report(step, outcome, Math.max(0, clock.now() - startedAt), error);
    };
    return {
      run: (work) => (span ? span.run(work) : work()),
      succeeded: () => end('done'),
      failed: (error) => end(this.isInterrupted(error) ? 'interrupted' : 'failed', error),
    };
  }

  private report({ name, kind }: ObservedStep, outcome: StepOutcomeKind, duration: number, error: unknown): void {
    const { task } = this;
    const { events } = this.deps;
    if (!events.wants('stepFinished')) return;
    const emit = (): void => events.emit('stepFinished', { task, step: name, kind, outcome, duration, error });
    if (task.span) task.span.run(emit);
    else emit();
  }

  /** Another attempt runs it again, and nothing counts as a failure. */
  private isInterrupted(error: unknown): boolean {
    const { aborted } = this.task;
    return (
      aborted instanceof ShutdownError || aborted instanceof LeaseExpiredError || hasCode(error, 'ASYNQ_LEASE_EXPIRED')
    );
  }
}
