import type { Broker } from '../../broker/broker.js';
import type { ActedCancellation, CancelOutcome, RecordedCancellation } from '../../broker/cancellation.js';
import { RevokeTask, SkipRetry, TaskCanceledError } from '../../errors.js';
import { namesLast } from '../../wire/keys.js';
import type { ActiveTask } from '../attempt/active-task.js';
import type { Attempts } from '../attempt/attempts.js';

/** Between two searches for cancellations whose message did not arrive. */
const SEARCH_INTERVAL_MS = 5_000;
/**
 * How far the clock of who cancels may be behind: an attempt that a message names then seems to
 * have begun later.
 */
const MAX_SKEW_MS = 10_000;

export interface CancellerOptions {
  readonly broker: Pick<Broker, 'cancellation' | 'uniqueness'>;
  readonly attempts: Attempts;
}

/**
 * Cancels running tasks. A message names an id, and so the tasks of that id in every queue; the
 * record of the cancellation says what becomes of them. Every few seconds the records are searched
 * for the ids that run here, because a message may get lost; then only attempts are cancelled that
 * had begun at the time of the record. While nothing runs, nothing is read. What a newer task has superseded is marked in the task
 * itself: of running tasks that can be, the marks are read, too.
 */
export class Canceller {
  /** Named by a message; the record is not yet read. */
  private readonly named = new Set<ActiveTask>();
  /** Cancelled, and not yet noted in the record. */
  private readonly acted = new Set<ActedCancellation>();

  constructor(private readonly options: CancellerOptions) {}

  /** A message has arrived. Returns whether it names a task that runs here: then a pass is due. */
  receive(id: string): boolean {
    const tasks = this.running().filter((task) => task.id === id);
    for (const task of tasks) this.named.add(task);
    return tasks.length > 0;
  }

  async runOnce(): Promise<number> {
    const running = this.running();
    const named = new Set(this.named); // of one named later the record may come too late
    const { unknown, problems } = await this.cancelSuperseded(running);
    if (running.length > 0) {
      const ids = [...new Set(running.map(({ id }) => id))];
      const recorded = new Map(
        (await this.options.broker.cancellation.findCancellations(ids)).map((one) => [one.id, one]),
      );
      for (const task of running) if (!unknown.has(task)) this.judge(task, recorded.get(task.id), named.has(task));
    }
    for (const task of named) if (!unknown.has(task)) this.named.delete(task);
    await this.note();
    if (problems.length > 0) throw problems[0];
    return SEARCH_INTERVAL_MS;
  }

  /** Also those that no message has named: it may be lost. Returns of which tasks it is unknown, and why. */
  private async cancelSuperseded(running: readonly ActiveTask[]) {
    const queues = new Map<string, ActiveTask[]>();
    for (const task of running) {
      if (!namesLast(task.message)) continue;
      const others = queues.get(task.queue);
      if (others) others.push(task);
      else queues.set(task.queue, [task]);
    }
    const unknown = new Set<ActiveTask>();
    const problems: unknown[] = [];
    const searches = Array.from(queues, async ([queue, tasks]) => {
      try {
        const ids = tasks.map(({ id }) => id);
        const found = await this.options.broker.uniqueness.findSuperseded(queue, ids);
        tasks.forEach((task, index) => {
          if (found[index] !== undefined) this.supersede(task, found[index]);
        });
      } catch (error) {
        problems.push(error);
        for (const task of tasks) unknown.add(task);
      }
    });
    await Promise.all(searches);
    return { unknown, problems };
  }

  private supersede(task: ActiveTask, by: string): void {
    this.options.attempts.fail(task, new TaskCanceledError(`superseded by task "${by}"`, { cause: new RevokeTask() }));
  }

  private judge(task: ActiveTask, recorded: RecordedCancellation | undefined, named: boolean): void {
    const cancellation = recorded && isMeant(task, recorded, named) ? recorded : undefined;
    if (!cancellation && !named) return;
    const { reason, outcome = 'retry' } = cancellation ?? {};
    this.options.attempts.fail(task, new TaskCanceledError(reason, { cause: CAUSES[outcome]?.() }));
    if (cancellation) this.acted.add({ id: task.id, at: cancellation.at, queue: task.queue });
  }

  private async note(): Promise<void> {
    const acted = [...this.acted];
    if (acted.length === 0) return;
    await this.options.broker.cancellation.noteCancelled(acted);
    for (const one of acted) this.acted.delete(one);
  }

  private running(): ActiveTask[] {
    return [...this.options.attempts.held()].filter(({ verdict, handlerSettled }) => !verdict && !handlerSettled);
  }
}

function isMeant(task: ActiveTask, { at, acted }: RecordedCancellation, named: boolean): boolean {
  return task.startedAt <= (named ? at + MAX_SKEW_MS : at) && !acted.includes(task.queue);
}

/** What makes a failure more than a failure (see verdict.ts). */
const CAUSES: Readonly<Partial<Record<CancelOutcome, () => Error>>> = {
  archive: () => new SkipRetry(),
  delete: () => new RevokeTask(),
};
