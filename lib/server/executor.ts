import { isForfeit, type Broker, type DamagedTask, type ExchangeReply, type LeasedTask } from '../broker/broker.js';
import type { Clock } from '../clock.js';
import { hasCode } from '../error-code.js';
import { DeadlineExceededError, LeaseExpiredError, ShutdownError, type AsynqError } from '../errors.js';
import type { Relay } from '../links/relay.js';
import { fairnessOf } from '../wire/fairness.js';
import { crashesOf } from '../wire/crashes.js';
import { isUndoing } from '../wire/undoing.js';
import { abort } from './attempt/abort.js';
import { Admission, type AdmissionOptions, type Admitted } from './attempt/admission.js';
import { ActiveTask, unreadableMessage, type Verdict } from './attempt/active-task.js';
import type { AttemptServices } from './attempt/attempt-services.js';
import { BatchCalls } from './attempt/batch-calls.js';
import { callHandler } from './attempt/call-handler.js';
import { Collectors } from './attempt/collectors.js';
import type { Attempts } from './attempt/attempts.js';
import { Deadlines } from './attempt/deadlines.js';
import type { BatchHandling, SingleHandlerEntry, TaskHandlerEntry } from './attempt/handler.js';
import { byWaitlist } from './attempt/held-claims.js';
import { Isolation } from './attempt/isolation.js';
import { reportFinished, reportStarted } from './attempt/report.js';
import { type CountedCall, StartAllowance } from './attempt/start-allowance.js';
import { withSteps } from './attempt/undoing.js';
import { takeBatch } from './fetching/batch.js';
import type { Exchanger } from './fetching/processor.js';
import type { QueueListener } from './fetching/queue-listener.js';
import type { QueueRegistry } from './fetching/queue-registry.js';
import type { QueueState } from './fetching/queue-state.js';

export interface ExecutorOptions extends AdmissionOptions {
  readonly broker: Pick<Broker, 'consumer' | 'uniqueness' | 'limiting' | 'fairQueues'>;
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
  private readonly batchCalls: BatchCalls;
  private readonly isolation: Isolation;
  private readonly allowance: StartAllowance;

  constructor(private readonly options: ExecutorOptions) {
    const { clock, mux, listener, broker } = options;
    this.allowance = new StartAllowance(clock, broker.limiting.firstAllowance);
    this.deadlines = new Deadlines(clock, this);
    this.admission = new Admission(options, this);
    this.batchCalls = new BatchCalls(options, this);
    this.collectors = new Collectors(mux.entries(), clock, this.batchCalls);
    this.isolation = new Isolation({ clock, server: this, onRoom: () => listener.workAvailable() });
  }

  get concurrency(): number {
    return this.options.listener.concurrency;
  }

  slots(concurrency: number): number {
    return this.isolation.slots(concurrency);
  }

  get accepting(): boolean {
    return this.accepts;
  }

  set accepting(accepts: boolean) {
    this.accepts = accepts;
    if (accepts) return;
    this.collectors.flush();
    this.options.limiters.stop();
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
    const claim = this.accepting ? this.options.limiters.claim(queue.name, take) : undefined;
    try {
      const settle = batch.map(({ verdict }) => verdict!.settlement);
      const claims = take > 0 || claim !== undefined;
      const since = claims && events.measuresWaits;
      const bare = claims && this.options.mux.hasSteps;
      const { limits } = queue.options;
      const aside = take > 0 ? limiters.full() : undefined;
      const call = claims && this.countsStarts(queue) ? this.allowance.begin() : undefined;
      const reply = await broker.consumer.exchange(queue.name, {
        settle,
        take,
        limits,
        since,
        bare,
        ...(aside && { aside }),
        ...(claim && { held: byWaitlist(claim), ahead: claim.ahead }),
        ...(call && { allowance: call.allowance }),
      });
      queue.reserved -= reserved;
      reserved = 0;
      if (reply.parcels) relay.carry(reply); // first of all: somebody waits for them
      queue.learn(reply, take, clock, listener);
      this.settle(queue, batch, reply);
      if (claim) limiters.arriving(queue.name, claim, reply.held);
      if (reply.aside) limiters.putAside(queue.name, reply.aside);
      this.claim(queue, reply, call);
      if (claim) limiters.claimed(claim, reply.held);
      listener.exchanged(queue, take, reply.tasks.length + reply.damaged.length);
      return true;
    } catch (error) {
      queue.finished.unshift(...batch);
      if (claim) limiters.arriving(queue.name, claim, undefined);
      if (claim) limiters.claimed(claim, undefined);
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
  private claim(queue: QueueState, { tasks, damaged, countedAt }: ExchangeReply, call: CountedCall | undefined): void {
    const now = this.options.clock.now();
    // The event loop has stood still since: others may have them by now.
    if (tasks[0] && isForfeit(tasks[0].lease, now)) return;
    const claimed = tasks.map((leased) => this.hold(queue, leased, now));
    this.claimed += claimed.length;
    for (const one of damaged) this.archiveDamaged(queue, one, now);
    if (!this.accepting) this.requeue(claimed, countedAt);
    else if (call && claimed.length > 0) this.requeue(this.admitInTime(queue, claimed, call), countedAt);
    else for (const task of claimed) this.admit(task);
  }

  /** Whether a rate of the queue, or of a key of it, may count what is claimed there. */
  private countsStarts({ name, options }: QueueState): boolean {
    return (options.limits?.rate ?? 0) > 0 || this.options.broker.fairQueues.has(name);
  }

  /** Returns what comes too late to start at the time for which it was counted: it goes back, to be counted again. */
  private admitInTime(queue: QueueState, claimed: readonly ActiveTask[], call: CountedCall): ActiveTask[] {
    this.allowance.observe(call);
    const late: ActiveTask[] = [];
    const counted = (queue.options.limits?.rate ?? 0) > 0;
    const awaits = this.options.limiters.size > 0;
    for (const task of claimed) {
      const isOver = this.allowance.isOver(call.startBy);
      if ((isOver || awaits) && (counted || (fairnessOf(task.message.headers)?.rate ?? 0) > 0)) {
        task.startBy = call.startBy;
      }
      if (isOver && task.startBy === call.startBy) late.push(task);
      else this.admit(task);
    }
    return late;
  }

  /** To the front of their queue. Their starts no longer count. */
  private requeue(tasks: ActiveTask[], countedAt: number | undefined): void {
    for (const task of tasks.reverse()) this.concludeUnrun(task, this.options.verdicts.requeue(task, countedAt));
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
    if (task.deadlineAt <= task.startedAt) return this.refuse(task, new DeadlineExceededError());
    this.deadlines.watch(task);
    const crashes = task.message.headers && crashesOf(task.message.headers);
    if (crashes) return this.isolation.add(task, crashes.count, () => this.runIsolated(task, handler));
    if (handler.batch) return this.collect(task, handler.batch);
    this.call(task, handler);
  }

  private call(task: ActiveTask, handler: SingleHandlerEntry): void {
    const { events, tracing } = this.options;
    task.span = tracing?.startProcess(task);
    reportStarted(events, task);
    const isSpecial = handler.steps !== undefined || isUndoing(task.message);
    callHandler(task, isSpecial ? withSteps(handler) : handler, this);
  }

  /** A batch would take others with it. */
  private runIsolated(task: ActiveTask, handler: TaskHandlerEntry): void {
    if (!handler.batch) return this.call(task, handler);
    this.running -= 1;
    this.batchCalls.startBatch({ tasks: [task], handling: handler.batch });
  }

  /** It gives its slot back until the handler is called. */
  private collect(task: ActiveTask, handling: BatchHandling): void {
    this.running -= 1;
    this.collectors.add(task, handling);
  }

  /** A failure without a handler. */
  refuse(task: ActiveTask, error: AsynqError): void {
    task.span = this.options.tracing?.startProcess(task);
    this.end(task, false, error);
  }

  /** The handler has settled, or was not called. */
  end(task: ActiveTask, succeeded: boolean, value: unknown): void {
    const steps = task.handlerSteps?.work;
    steps?.ended();
    // Steps that it has begun side by side end first: what they do is stored, or undone.
    const before = steps?.isBusy ? steps.quiet() : succeeded || !isSuspension(value) ? steps?.storeApart() : undefined;
    if (before) return void before.then(() => this.end(task, succeeded, value));
    this.running -= 1;
    this.endAttempt(task, succeeded, value);
  }

  /** Its slot is free, or it had none. */
  endAttempt(task: ActiveTask, succeeded: boolean, value: unknown): void {
    const hasEnded = task.verdict !== undefined || task.lost;
    task.handlerSettled = true;
    if (!hasEnded) this.conclude(task, this.verdictOf(task, succeeded, value));
    if (this.options.limiters.size > 0) this.options.limiters.left(task);
    if (!this.isolation.isIdle) this.leaveIsolation(task);
    if (!hasEnded) return;
    this.options.queues.get(task.queue)?.lingering.delete(task);
    this.options.listener.workAvailable();
  }

  private leaveIsolation(task: ActiveTask): void {
    this.isolation.remove(task);
    this.isolation.look();
  }

  private verdictOf(task: ActiveTask, succeeded: boolean, value: unknown): Verdict {
    const { verdicts } = this.options;
    if (succeeded) return verdicts.success(task, value);
    const isSuspended = task.handlerSteps?.work.suspension && isSuspension(value);
    const goesBack = task.aborted instanceof ShutdownError && !isSuspended;
    return goesBack ? verdicts.requeue(task) : verdicts.failure(task, value);
  }

  private concludeUnrun(task: ActiveTask, verdict: Verdict): void {
    task.handlerSettled = true;
    this.conclude(task, verdict);
  }

  /** The first verdict stands. */
  conclude(task: ActiveTask, verdict: Verdict): void {
    if (task.verdict || task.lost) return;
    task.verdict = verdict;
    task.endedAt = this.options.clock.now();
    task.span?.end(verdict.outcome, verdict.error);
    const unwritten = task.closeNotes();
    if (unwritten) void unwritten.then(() => this.settleSoon(task));
    else this.settleSoon(task);
  }

  /** With the next exchange. What the handler has said is stored by now: the settlement may delete the task. */
  private settleSoon(task: ActiveTask): void {
    if (task.lost) return;
    this.options.queues.get(task.queue)?.finished.push(task);
    this.options.listener.workAvailable();
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
    if (this.isolation.cancel(task)) return this.end(task, false, reason);
    abort(task, reason, this.options.clock, this.options.events);
    this.conclude(task, this.options.verdicts.failure(task, reason));
  }

  lose(task: ActiveTask): void {
    if (task.lost) return;
    const { clock, events, queues } = this.options;
    task.lost = true;
    if (this.collectors.remove(task)) this.endAttempt(task, false, undefined);
    else if (this.isolation.cancel(task)) this.end(task, false, undefined);
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
      else if (this.isolation.cancel(task)) this.giveSlotBack(task);
      else if (!task.handlerSettled) task.abort(reason);
    }
  }

  /** A task that was only collected goes back to its queue. */
  private giveBack(task: ActiveTask): void {
    this.conclude(task, this.options.verdicts.requeue(task));
    this.endAttempt(task, false, undefined);
  }

  /** The same of one that waits for few others. */
  private giveSlotBack(task: ActiveTask): void {
    this.running -= 1;
    this.giveBack(task);
  }

  /** Each goes to the front of its queue, so the one claimed last goes first. */
  requeueAll(): void {
    for (const task of [...this.held()].reverse()) {
      if (!task.verdict) this.conclude(task, this.options.verdicts.requeue(task));
    }
  }

  close(): void {
    this.isolation.close();
    this.deadlines.close();
  }
}

const isSuspension = (value: unknown): boolean => hasCode(value, 'ASYNQ_TASK_SUSPENDED');
