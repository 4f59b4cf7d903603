import type { AsynqEvents } from '../../events/events.js';
import type { BatchSpan, Tracing } from '../../tracing/tracing.js';
import type { ActiveTask } from './active-task.js';
import type { BatchStarter, CollectedBatch } from './collectors.js';
import { type BatchHandling, FailedTask } from './handler.js';
import { reportStarted } from './report.js';

export interface BatchCallsOptions {
  readonly events: AsynqEvents;
  readonly tracing: Tracing | undefined;
  readonly listener: { hasRoom(): boolean; workAvailable(): void };
}

/** Who counts the slots, and ends the attempts. */
export interface BatchAttempts {
  running: number;
  endAttempt(task: ActiveTask, succeeded: boolean, value: unknown): void;
}

/** Calls batch handlers: a call takes one slot, and each of its tasks ends alone. */
export class BatchCalls implements BatchStarter {
  constructor(
    private readonly options: BatchCallsOptions,
    private readonly attempts: BatchAttempts,
  ) {}

  hasRoom(): boolean {
    return this.options.listener.hasRoom();
  }

  startBatch({ tasks, handling }: CollectedBatch): void {
    const { events, tracing } = this.options;
    this.attempts.running += 1;
    const span = tracing?.startProcessBatch(tasks);
    for (const [index, task] of tasks.entries()) {
      task.span = span?.ofTasks[index];
      reportStarted(events, task);
    }
    this.call(tasks, handling, span);
  }

  private call(tasks: readonly ActiveTask[], { handle }: BatchHandling, span: BatchSpan | undefined): void {
    const returned = span ? span.run(() => handle(tasks)) : handle(tasks);
    returned.then(
      (entries) => this.end(tasks, (index) => entries[index]),
      (error: unknown) => this.end(tasks, () => new FailedTask(error)),
    );
  }

  private end(tasks: readonly ActiveTask[], entryOf: (index: number) => unknown): void {
    this.attempts.running -= 1;
    for (const [index, task] of tasks.entries()) {
      const entry = entryOf(index);
      if (entry instanceof FailedTask) this.attempts.endAttempt(task, false, entry.error);
      else this.attempts.endAttempt(task, true, entry);
    }
    this.options.listener.workAvailable();
  }
}
