import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Lease, LeasedTask } from '../broker/broker.js';
import type { TaskOutcome } from '../events/events.js';
import type { ActiveTask } from './attempt/active-task.js';
import type { Attempts } from './attempt/attempts.js';
import type { Core } from './core.js';
import { Canceller } from './loops/canceller.js';
import { checkQueue } from './options.js';

/** Bounds a pass whose handlers enqueue tasks for themselves without end. */
const MAX_FILLING_PASSES = 100;

/** Drives a server that was not started: each call does what its loops do. */
export class ByHand {
  constructor(private readonly core: Core) {}

  /** One pass whose tasks are run and settled. */
  runOnce(): Promise<TaskOutcome[]> {
    return this.outcomesOf(async () => {
      await this.findRoom();
      await this.takeOnce();
      await this.whenQuiet();
    });
  }

  /** Wakes tasks that wait for a limit of their handler, as far as there may be room. */
  async findRoom(): Promise<void> {
    await this.core.limiters.findRoom();
  }

  /**
   * Ends waits that are over, moves due tasks to pending, makes tasks of due groups, and claims up to `concurrency` tasks. Resolves
   * when their handlers have started, with how many were claimed.
   */
  async takeOnce(): Promise<number> {
    const { queues, deps, loops, aggregator, limiters, executor } = this.core;
    if (limiters.size > 0) await nextTurn(); // tasks that have ended make room
    await loops.linkKeeper.runByHand();
    await deps.relay.idle();
    for (const queue of queues.names()) {
      await deps.broker.maintenance.forward(queue);
      await deps.broker.groups.reclaimStaleSets(queue);
    }
    await aggregator.runDue();
    const before = executor.claimed;
    await this.fillBatches();
    executor.collectors.flush(); // time need not pass for a batch that gets no more tasks
    return executor.claimed - before;
  }

  /** A task that waits for its limiter or for its lock has a slot until it is in a batch: then more may come. */
  private async fillBatches(): Promise<void> {
    const { processor, executor } = this.core;
    for (let passes = 0; passes < MAX_FILLING_PASSES; passes++) {
      const { batched } = executor;
      await processor.takeOnce();
      await nextTurn(); // limiters have decided, locks are free
      if (executor.batched === batched) return;
    }
  }

  /** Others see this server as one that runs, while the work goes on. */
  whilePublished<T>(work: () => Promise<T>): Promise<T> {
    return this.core.loops.whilePublished(work);
  }

  /** Resolves when no handler runs and every outcome is stored. */
  whenQuiet(): Promise<void> {
    return this.core.processor.whenQuiet();
  }

  /**
   * Runs and settles one task that the caller has leased, whatever limits there are. `undefined`: its payload is newer than the handler.
   */
  async work(leased: LeasedTask): Promise<TaskOutcome | undefined> {
    const { queues, executor } = this.core;
    const { queue: name, id } = leased.lease;
    const served = queues.get(name);
    const queue = served ?? queues.add(name, checkQueue(name, 1));
    const outcomes = await this.outcomesOf(async () => {
      executor.execute(queue, leased);
      executor.collectors.flush();
      await this.whenQuiet();
    });
    if (!served) queues.remove(name);
    return outcomes.find(({ task }) => task.id === id);
  }

  /** The server of a task has died, and another one recovers it. Returns whether the task was held here. */
  async crash({ queue, id }: Lease): Promise<boolean> {
    const { executor, verdicts, deps } = this.core;
    const task = [...executor.held()].find((held) => held.id === id && held.queue === queue);
    if (!task) return false;
    const { lease, message } = task;
    executor.lose(task);
    const { settlement } = await verdicts.leaseExpired({ lease, message }, { servers: [], others: 0 });
    const reply = await deps.broker.consumer.exchange(queue, { settle: [settlement], take: 0 });
    if (reply.parcels) deps.relay.carry(reply);
    return true;
  }

  /** The tasks whose handlers have not settled. */
  get running(): readonly ActiveTask[] {
    return [...this.core.queues.running()];
  }

  /** Whether every attempt that has ended is stored. */
  get isSettled(): boolean {
    const queues = [...this.core.queues.all()];
    return queues.every(({ busy, held }) => !busy && ![...held].some(({ verdict }) => verdict));
  }

  /** Whether the server makes one task of the tasks of such a group. */
  aggregates(group: string): boolean {
    return this.core.aggregators.find(group) !== undefined;
  }

  /** When a group is due that this server aggregates, in milliseconds; `undefined` when none waits. */
  async nextGroupDue(): Promise<number | undefined> {
    const seconds = await this.core.aggregator.nextDue();
    return seconds === undefined ? undefined : seconds * 1000;
  }

  /** When the rate of a handler for which tasks wait has room again, in milliseconds; `undefined` when none waits. */
  nextRoom(): number | undefined {
    return this.core.limiters.nextRoom();
  }

  /** The most starts of a queue per window; `undefined`: as many as come. */
  rateOf(queue: string): { readonly max: number; readonly window: number } | undefined {
    const limits = this.core.queues.get(queue)?.options.limits;
    return limits && limits.rate > 0 ? { max: limits.rate, window: limits.window } : undefined;
  }

  /**
   * Cancels running tasks as their cancellations arrive. Each message has a canceller that sees the tasks of its id only: where the
   * clock stands still, a task cancelled while it was pending seems to have begun by then.
   */
  listen(): void {
    const { deps, executor } = this.core;
    const { broker, events } = deps;
    const onCancel = (id: string): void => {
      const attempts: Attempts = {
        held: () => [...executor.held()].filter((task) => task.id === id),
        fail: (task, reason) => executor.fail(task, reason),
        lose: (task) => executor.lose(task),
      };
      const canceller = new Canceller({ broker, attempts });
      if (!canceller.receive(id)) return;
      canceller.runOnce().catch((error: unknown) => events.emit('loopFailed', { loop: 'canceller', error }));
    };
    // Fails when the broker is closed: then nothing runs.
    broker.cancellation.subscribeCancellations(onCancel).catch(() => undefined);
  }

  private async outcomesOf(run: () => Promise<void>): Promise<TaskOutcome[]> {
    const outcomes: TaskOutcome[] = [];
    const off = this.core.deps.events.on('taskFinished', (outcome) => outcomes.push(outcome));
    await run().finally(off);
    return outcomes;
  }
}
