import type {
  ActedCancellation,
  CancelOutcome,
  CancellationBroker,
  RecordedCancellation,
} from '../../broker/cancellation.js';
import { RevokeTask, SkipRetry, TaskCanceledError } from '../../errors.js';
import type { ActiveTask } from '../attempt/active-task.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';

/** Milliseconds between two looks for cancellations whose message did not arrive. */
const EVERY = 5_000;
/** Milliseconds by which the clock of who cancels may be behind: an attempt that heard of it seems to have begun later. */
const SKEW = 10_000;

export interface CancellerOptions {
  readonly broker: Pick<CancellationBroker, 'findCancellations' | 'noteCancelled'>;
  readonly queues: QueueRegistry;
  readonly cancel: (task: ActiveTask, reason: TaskCanceledError) => void;
}

/**
 * Cancels running tasks. A message names only an id, so tasks of that id in every queue are meant; what is to become of them
 * is looked up. The same look, every few seconds, finds what was recorded while no message could arrive: by that, only attempts
 * that had begun when it was asked for are cancelled. While nothing runs here, nothing is asked.
 */
export class Canceller {
  /** Named by a message, and not yet looked up. */
  private readonly heard = new Set<ActiveTask>();
  /** Acted on, and not yet noted. */
  private readonly acted = new Set<ActedCancellation>();

  constructor(private readonly options: CancellerOptions) {}

  /** A message has arrived. Answers whether it concerns a task that runs here: then a pass is due. */
  hear(id: string): boolean {
    const named = this.running().filter((task) => task.id === id);
    for (const task of named) this.heard.add(task);
    return named.length > 0;
  }

  async runOnce(): Promise<number> {
    const running = this.running();
    const heard = new Set(this.heard); // what is heard while the look is under way may not have been recorded when it began
    if (running.length > 0) {
      const ids = [...new Set(running.map(({ id }) => id))];
      const recorded = new Map((await this.options.broker.findCancellations(ids)).map((one) => [one.id, one]));
      for (const task of running) this.judge(task, recorded.get(task.id), heard.has(task));
    }
    for (const task of heard) this.heard.delete(task);
    await this.note();
    return EVERY;
  }

  private judge(task: ActiveTask, recorded: RecordedCancellation | undefined, heard: boolean): void {
    const cancellation = recorded && isMeant(task, recorded, heard) ? recorded : undefined;
    if (!cancellation && !heard) return;
    const { reason, outcome = 'retry' } = cancellation ?? {};
    this.options.cancel(task, new TaskCanceledError(reason, { cause: CAUSES[outcome]?.() }));
    if (cancellation) this.acted.add({ id: task.id, at: cancellation.at, queue: task.queue });
  }

  private async note(): Promise<void> {
    const acted = [...this.acted];
    if (acted.length === 0) return;
    await this.options.broker.noteCancelled(acted);
    for (const one of acted) this.acted.delete(one);
  }

  private running(): ActiveTask[] {
    return [...this.options.queues.held()].filter(({ verdict, handlerSettled }) => !verdict && !handlerSettled);
  }
}

function isMeant(task: ActiveTask, { at, acted }: RecordedCancellation, heard: boolean): boolean {
  return task.startedAt <= (heard ? at + SKEW : at) && !acted.includes(task.queue);
}

/** What makes a failure more than a failure (see verdict.ts). */
const CAUSES: Readonly<Partial<Record<CancelOutcome, () => Error>>> = {
  archive: () => new SkipRetry(),
  delete: () => new RevokeTask(),
};
