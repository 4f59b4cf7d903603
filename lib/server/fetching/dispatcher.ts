import type { ConsumerBroker, DamagedTask, ExchangeReply, LeasedTask } from '../../broker/broker.js';
import type { Clock } from '../../clock.js';
import type { AsynqEvents, TaskOutcomeKind } from '../../events/events.js';
import { decodeTaskMessage } from '../../wire/codec.js';
import { ActiveTask } from '../attempt/active-task.js';
import type { QueueState } from './queue-state.js';
import type { QueueRegistry } from './queue-registry.js';
import type { Runner } from '../attempt/runner.js';
import type { Verdicts } from '../attempt/verdict.js';

export interface DispatcherOptions {
  readonly broker: ConsumerBroker;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly queues: QueueRegistry;
  readonly runner: Runner;
  readonly verdicts: Verdicts;
  readonly encodeResult: (result: unknown) => Buffer | undefined;
  /** A task that found a limit reached now stands in the line. */
  readonly onWaiting: (task: ActiveTask) => void;
}

/** The border between exchanges and attempts: makes attempts of what was taken, and ends those that were settled. */
export class Dispatcher {
  constructor(private readonly options: DispatcherOptions) {}

  /** Ends the attempts of a batch with what the broker made of them. */
  settled(batch: readonly ActiveTask[], statuses: ExchangeReply['settled']): void {
    for (let index = 0; index < batch.length; index++) {
      const task = batch[index]!;
      const { outcome, settlement } = task.verdict!;
      this.forget(task);
      if (statuses[index] !== 'settled') this.report(task, 'lost');
      else if (settlement.kind === 'wait') this.options.onWaiting(task);
      else this.report(task, outcome);
    }
  }

  /** Starts the handlers of what an exchange took; or gives it back untouched when the server has stopped meanwhile. */
  taken(queue: QueueState, reply: ExchangeReply, run: boolean): void {
    const now = this.options.clock.now();
    const tasks = reply.tasks.map((leased) => this.admit(queue, leased, now));
    for (const damaged of reply.damaged) this.setAside(queue, damaged, now);
    if (run) for (const task of tasks) this.options.runner.start(task);
    else for (const task of tasks.reverse()) this.giveBack(task);
  }

  /** To the front of its queue, the attempt not counted. */
  private giveBack(task: ActiveTask): void {
    task.handlerSettled = true;
    this.options.runner.conclude(task, this.options.verdicts.requeue(task));
  }

  /** Makes an attempt of a leased task; its lease is kept alive from here on. */
  admit(queue: QueueState, { lease, message, pendingSince }: LeasedTask, now = this.options.clock.now()): ActiveTask {
    const { broker, encodeResult } = this.options;
    // The clock of who made it pending may be ahead of ours.
    const waited = pendingSince === undefined ? undefined : Math.max(0, now - pendingSince);
    const task = new ActiveTask(broker, encodeResult, lease, message, now, waited);
    queue.held.add(task);
    return task;
  }

  /** The lease is another's: forget the task; its handler, if it still runs, keeps its slot. */
  lost(task: ActiveTask): void {
    if (task.lost) return;
    this.options.runner.leaseLost(task);
    this.forget(task);
    this.report(task, 'lost');
  }

  /** Archives a task nobody can decode as it is, so that it blocks nothing. */
  private setAside(queue: QueueState, { lease, error }: DamagedTask, now: number): void {
    const task = this.admit(queue, { lease, message: unreadableMessage(lease.id, lease.queue) }, now);
    task.handlerSettled = true;
    this.options.events.emit('taskDamaged', { task: { id: lease.id, queue: lease.queue }, error });
    const settlement = { kind: 'archive', lease, message: undefined } as const;
    this.options.runner.conclude(task, { outcome: 'archived', settlement, error });
  }

  private forget(task: ActiveTask): void {
    const queue = this.options.queues.get(task.queue);
    if (!queue) return;
    queue.held.delete(task);
    if (!task.handlerSettled) queue.lingering.add(task);
  }

  private report(task: ActiveTask, outcome: TaskOutcomeKind): void {
    if (!this.options.events.wants('taskFinished')) return;
    if (task.span)
      task.span.run(() => this.tell(task, outcome)); // what listeners do belongs to its trace
    else this.tell(task, outcome);
  }

  private tell(task: ActiveTask, outcome: TaskOutcomeKind): void {
    const { verdict, retried, maxRetry } = task;
    const settlement = verdict?.settlement;
    this.options.events.emit('taskFinished', {
      outcome,
      task,
      retried,
      maxRetry,
      result: verdict?.result,
      error: verdict?.error ?? task.aborted,
      waited: task.waited,
      retryAt: settlement?.kind === 'retry' ? new Date(settlement.retryAt * 1000) : undefined,
      duration: Math.max(0, (task.endedAt || this.options.clock.now()) - task.startedAt),
    });
  }
}

/** An undecodable task as far as it is known: no bytes are asynq's message with every field at its zero. */
const unreadableMessage = (id: string, queue: string): LeasedTask['message'] => ({
  ...decodeTaskMessage(Buffer.alloc(0)),
  id,
  queue,
});
