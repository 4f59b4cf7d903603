import type { Broker, DamagedTask, ExchangeReply, LeasedTask } from '../broker/broker.js';
import type { Clock } from '../clock.js';
import { DeadlineExceededError, LeaseExpiredError, ShutdownError, type AsynqError } from '../errors.js';
import type { Relay } from '../links/relay.js';
import { abort } from './attempt/abort.js';
import { Admission, type AdmissionOptions, type Admitted } from './attempt/admission.js';
import { ActiveTask, unreadableMessage, type Verdict } from './attempt/active-task.js';
import type { AttemptServices } from './attempt/attempt-services.js';
import { BatchCalls } from './attempt/batch-calls.js';
import { callHandler } from './attempt/call-handler.js';
import { Collectors } from './attempt/collectors.js';
import type { Attempts } from './attempt/attempts.js';
import { Deadlines } from './attempt/deadlines.js';
import type { BatchHandling, TaskHandlerEntry } from './attempt/handler.js';
import { reportFinished, reportStarted } from './attempt/report.js';
import { takeBatch } from './fetching/batch.js';
import type { Exchanger } from './fetching/processor.js';
import type { QueueListener } from './fetching/queue-listener.js';
import type { QueueRegistry } from './fetching/queue-registry.js';
import type { QueueState } from './fetching/queue-state.js';

export interface ExecutorOptions extends AdmissionOptions {
  readonly broker: Pick<Broker, 'consumer' | 'uniqueness'>;
  readonly relay: Pick<Relay, 'carry'>;
  readonly clock: Clock;
  readonly queues: QueueRegistry;
  readonly services: AttemptServices;
  readonly listener: QueueListener;
}

/**
 * The way of a task through a server, in the order of the methods:
 *
 * - `exchange` settles what has finished in a queue and claims new tasks, in one call to Redis.
 * - `claim` makes an attempt of each of them.
 * - `admit` takes a slot; `attempt/admission.ts` finds the handler and decides whether the task may run now.
 * - `run` calls the handler; `collect` puts a task of a batch handler beside others, and `attempt/batch-calls.ts` calls that.
 * - `conclude` gives the attempt its verdict: the handler's, or that of a deadline, cancellation or
 *   lost lease before. A handler that goes on keeps its slot and changes nothing.
 * - `settle` ends the attempt when an exchange has stored the verdict.
 */
export class Executor implements Exchanger, Attempts, Admitted {
  running = 0;
  /** How many tasks it has claimed so far. */
  claimed = 0;
  private accepts = false;
  private readonly deadlines: Deadlines;
  private readonly admission: Admission;
  readonly collectors: Collectors;

  constructor(private readonly options: ExecutorOptions) {
    this.deadlines = new Deadlines(options.clock, this);
    this.admission = new Admission(options, this);
    this.collectors = new Collectors(options.mux.entries(), options.clock, new BatchCalls(options, this));
  }

  get accepting(): boolean {
    return this.accepts;
  }

  set accepting(accepts: boolean) {
    this.accepts = accepts;
    if (!accepts) this.collectors.flush();
  }

  get batchesWaiting(): number {
    return this.collectors.waiting;
  }

  get batched(): number {
    return this.collectors.added;
  }

  async exchange(queue: QueueState, take: number): Promise<boolean> {
    const { broker, relay, clock, events, queues, listener, limiters } = this.options;
    const batch = takeBatch(queue.finished);
    queue.exchanges += 1;
    queue.reserved += take;
    let reserved = take;
    try {
      const settle = batch.map(({ verdict }) => verdict!.settlement);
      const since = take > 0 && events.measuresWaits;
      const { limits } = queue.options;
      const aside = take > 0 ? limiters.full() : undefined;
      const reply = await broker.consumer.exchange(queue.name, {
        settle,
        take,
        limits,
        since,
        ...(aside && { aside }),
      });
      queue.reserved -= reserved;
      reserved = 0;
      if (reply.parcels) relay.carry(reply); // first of all: somebody waits for them
      queue.learn(reply, take, clock, listener);
      if (reply.aside) limiters.putAside(queue.name, reply.aside);
      this.settle(queue, batch, reply);
      this.claim(queue, reply);
      listener.exchanged(queue, take, reply.tasks.length + reply.damaged.length);
      return true;
    } catch (error) {
      queue.finished.unshift(...batch);
      listener.exchangeFailed(queue, error);
      return false;
    } finally {
      queue.reserved -= reserved;
      queue.exchanges -= 1;
      queues.forgetIfDone(queue);
      listener.workAvailable(); // its round may be over, or it was the syncer's
    }
  }

  /** If the server has stopped meanwhile, the tasks go back to the front of their queue. */
  private claim(queue: QueueState, { tasks, damaged }: ExchangeReply): void {
    const now = this.options.clock.now();
    const claimed = tasks.map((leased) => this.hold(queue, leased, now));
    this.claimed += claimed.length;
    for (const one of damaged) this.archiveDamaged(queue, one, now);
    if (this.accepting) for (const task of claimed) this.admit(task);
    else for (const task of claimed.reverse()) this.concludeUnrun(task, this.options.verdicts.requeue(task));
  }

  /** Runs one task that the caller has leased. No limit counts it or holds it back. */
  execute(queue: QueueState, leased: LeasedTask): void {
    this.admit(this.hold(queue, leased, this.options.clock.now()), false);
  }

  /** From here on the lease is kept. */
  private hold(queue: QueueState, leased: LeasedTask, now: number): ActiveTask {
    const task = new ActiveTask(this.options.services, leased, now);
    queue.held.add(task);
    return task;
  }

  /** A task that cannot be decoded is archived as it is, so that it blocks nothing. */
  private archiveDamaged(queue: QueueState, { lease, error }: DamagedTask, now: number): void {
    const task = this.hold(queue, { lease, message: unreadableMessage(lease) }, now);
    this.options.events.emit('taskDamaged', { task: { id: lease.id, queue: lease.queue }, error });
    this.concludeUnrun(task, this.options.verdicts.damaged(task, error));
  }

  private admit(task: ActiveTask, isLimited = true): void {
    this.running += 1;
    this.admission.admit(task, isLimited);
  }

  run(task: ActiveTask, handler: TaskHandlerEntry): void {
    const { events, tracing } = this.options;
    if (task.deadlineAt <= task.startedAt) return this.refuse(task, new DeadlineExceededError());
    if (handler.batch) return this.collect(task, handler.batch);
    task.span = tracing?.startProcess(task);
    reportStarted(events, task);
    this.deadlines.watch(task);
    callHandler(task, handler, this);
  }

  /** It gives its slot back until the handler is called. */
  private collect(task: ActiveTask, handling: BatchHandling): void {
    this.running -= 1;
    this.deadlines.watch(task);
    this.collectors.add(task, handling);
  }

  /** A failure without a handler. */
  refuse(task: ActiveTask, error: AsynqError): void {
    task.span = this.options.tracing?.startProcess(task);
    this.end(task, false, error);
  }

  /** The handler has settled, or was not called. */
  end(task: ActiveTask, succeeded: boolean, value: unknown): void {
    this.running -= 1;
    this.endAttempt(task, succeeded, value);
  }

  /** Its slot is free, or it had none. */
  endAttempt(task: ActiveTask, succeeded: boolean, value: unknown): void {
    const hasEnded = task.verdict !== undefined || task.lost;
    task.handlerSettled = true;
    if (!hasEnded) this.conclude(task, this.verdictOf(task, succeeded, value));
    if (this.options.limiters.size > 0) this.options.limiters.left(task);
    if (!hasEnded) return;
    this.options.queues.get(task.queue)?.lingering.delete(task);
    this.options.listener.workAvailable();
  }

  private verdictOf(task: ActiveTask, succeeded: boolean, value: unknown): Verdict {
    const { verdicts } = this.options;
    if (succeeded) return verdicts.success(task, value);
    return task.aborted instanceof ShutdownError ? verdicts.requeue(task) : verdicts.failure(task, value);
  }

  private concludeUnrun(task: ActiveTask, verdict: Verdict): void {
    task.handlerSettled = true;
    this.conclude(task, verdict);
  }

  /** The first verdict stands. */
  conclude(task: ActiveTask, verdict: Verdict): void {
    if (task.verdict || task.lost) return;
    const { clock, queues, listener } = this.options;
    task.verdict = verdict;
    task.endedAt = clock.now();
    task.span?.end(verdict.outcome, verdict.error);
    queues.get(task.queue)?.finished.push(task);
    listener.workAvailable();
  }

  private settle(queue: QueueState, batch: readonly ActiveTask[], { settled }: ExchangeReply): void {
    const { clock, events } = this.options;
    for (let index = 0; index < batch.length; index++) {
      const task = batch[index]!;
      const { outcome, settlement } = task.verdict!;
      queue.release(task);
      if (settled[index] !== 'settled') reportFinished(events, clock, task, 'lost');
      else if (settlement.kind === 'wait') this.options.limiters.queued(task, settlement.waitlist);
      else reportFinished(events, clock, task, outcome);
    }
  }

  held(): Iterable<ActiveTask> {
    return this.options.queues.held();
  }

  fail(task: ActiveTask, reason: AsynqError): void {
    if (task.verdict || task.lost || task.handlerSettled) return;
    if (this.collectors.remove(task)) return this.endAttempt(task, false, reason);
    abort(task, reason, this.options.clock, this.options.events);
    this.conclude(task, this.options.verdicts.failure(task, reason));
  }

  lose(task: ActiveTask): void {
    if (task.lost) return;
    const { clock, events, queues } = this.options;
    task.lost = true;
    if (this.collectors.remove(task)) this.endAttempt(task, false, undefined);
    if (!task.handlerSettled) {
      const reason = new LeaseExpiredError();
      task.span?.end('lost', reason);
      abort(task, reason, clock, events);
    }
    queues.get(task.queue)?.release(task);
    reportFinished(events, clock, task, 'lost');
  }

  /** Asks every handler to stop. What it makes of that is still the verdict. */
  interruptAll(reason: AsynqError): void {
    const tasks = Array.from(this.held()).reverse();
    for (const task of tasks) {
      if (this.collectors.remove(task)) this.giveBack(task);
      else if (!task.handlerSettled) task.abort(reason);
    }
  }

  /** A task that was only collected goes back to its queue. */
  private giveBack(task: ActiveTask): void {
    this.conclude(task, this.options.verdicts.requeue(task));
    this.endAttempt(task, false, undefined);
  }

  /** Each goes to the front of its queue, so the one claimed last goes first. */
  requeueAll(): void {
    for (const task of [...this.held()].reverse()) {
      if (!task.verdict) this.conclude(task, this.options.verdicts.requeue(task));
    }
  }

  close(): void {
    this.deadlines.close();
  }
}
