import { AsyncLocalStorage } from 'node:async_hooks';
import { backoff } from '../async.js';
import type { Clock, ClockTimer } from '../clock.js';
import { type EnqueueResult, resultOf } from '../enqueue/enqueue-result.js';
import type { LinkedRequest } from '../broker/links.js';
import type { RepeatRequest } from '../broker/uniqueness.js';
import { tasksBefore } from '../enqueue/linked-task.js';
import type { PreparedTask } from '../enqueue/prepared-task.js';
import { type EnqueueReply, Unacknowledged } from '../enqueue/producing.js';
import { ClosedError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import { LAST_COUNTS } from '../task/repeats.js';
import type { TransactionScope } from '../transactions/transactions.js';

/** How long tasks of a committed transaction are sent again, in milliseconds. */
const RETRY_FOR_MS = 60_000;

export interface AfterCommitDeps {
  readonly clock: Clock;
  readonly events: AsynqEvents | undefined;
  /** Rejects when the call fails: then the task may or may not be stored. Calls of one tick go together. */
  send(task: PreparedTask): Promise<EnqueueReply>;
}

/** Tasks of one transaction that Redis does not have yet. */
interface Left {
  readonly tasks: readonly PreparedTask[];
  readonly error: unknown;
}

/**
 * Tasks that wait for the commit of a transaction, and are sent then. What cannot be sent is sent again
 * for a minute; the process can die in between, and then they are lost. An outbox has no such gap.
 */
export class AfterCommit {
  /** Ends the pauses under way. */
  private readonly pauses = new Set<() => void>();
  private readonly running = new Set<Promise<void>>();
  private closed = false;
  /** By lock, the last task that is under way, if it is one of which the last counts. */
  private readonly last = new Map<string, PreparedTask>();
  /** Tasks that a later commit stands for: sent again, they would take its place. */
  private readonly outdated = new WeakSet<PreparedTask>();
  /** By queue and id, the last try to send a task, until Redis has it: what waits for this task is sent after it. */
  private readonly tries = new Map<string, Promise<unknown>>();
  /** Leaves the transaction: what begins after its commit must not find it around itself. */
  private readonly outside = AsyncLocalStorage.snapshot();

  constructor(private readonly deps: AfterCommitDeps) {}

  /** The transaction waits for the first try only. */
  hold(scope: TransactionScope, tasks: readonly PreparedTask[]): void {
    scope.afterCommit(() => this.outside(() => this.track(this.sendFirst(tasks))));
  }

  /** Sends what is left once more, at once, and resolves when nothing is under way. */
  async close(): Promise<void> {
    this.closed = true;
    for (const wake of this.pauses) wake();
    while (this.running.size > 0) await Promise.all(this.running);
  }

  private track(work: Promise<void>): Promise<void> {
    const run = work.finally(() => {
      this.running.delete(run);
      if (this.running.size === 0) this.tries.clear();
    });
    this.running.add(run);
    return run;
  }

  private async sendFirst(tasks: readonly PreparedTask[]): Promise<void> {
    for (const task of tasks) this.outdate(task);
    const left = await this.send(tasks, false);
    if (left) void this.track(this.retry(left));
  }

  private async retry(first: Left): Promise<void> {
    const { clock, events } = this.deps;
    const until = clock.elapsed() + RETRY_FOR_MS;
    let left: Left | undefined = first;
    for (let failures = 1; left && !(left.error instanceof ClosedError); failures++) {
      const isLast = this.closed || clock.elapsed() >= until;
      if (!isLast) await this.pause(backoff(failures));
      left = await this.send(left.tasks, true);
      if (isLast) break;
    }
    if (!left) return;
    for (const task of left.tasks) this.end(task);
    const tasks = left.tasks.map(({ request: { message } }) => message);
    events?.emit('lostAfterCommit', {
      tasks: tasks.map(({ id, type, queue }) => ({ id, type, queue })),
      error: left.error,
    });
  }

  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      let timer: ClockTimer | undefined;
      const wake = (): void => {
        timer?.cancel();
        this.pauses.delete(wake);
        resolve();
      };
      this.pauses.add(wake);
      timer = this.deps.clock.after(milliseconds, wake);
    });
  }

  /** Returns the tasks that Redis may not have. @param again whether an earlier call may have stored them */
  private async send(committed: readonly PreparedTask[], again: boolean): Promise<Left | undefined> {
    const tasks = again ? committed.filter((task) => !this.outdated.has(task)) : committed;
    const calls = await Promise.allSettled(tasks.map((task) => this.try(task)));
    const left: PreparedTask[] = [];
    let failure: unknown;
    calls.forEach((call, index) => {
      const task = tasks[index]!;
      if (call.status === 'fulfilled') {
        this.end(task);
        return this.settle(task, again ? known(task, call.value) : call.value);
      }
      failure = call.reason;
      if (!this.outdated.has(task)) left.push(task);
    });
    return left.length === 0 ? undefined : { tasks: left, error: failure };
  }

  /** One that waits for a task which could not be sent fails with it, and is tried again. */
  private try(task: PreparedTask): Promise<EnqueueReply> {
    const { tries } = this;
    const before = task.linked ? tasksBefore(task.request as LinkedRequest) : [];
    const awaited = before.flatMap(({ queue, id }) => tries.get(`${queue} ${id}`) ?? []);
    const sent = awaited.length === 0 ? this.deps.send(task) : Promise.all(awaited).then(() => this.deps.send(task));
    const { queue, id } = task.request.message;
    const name = `${queue} ${id}`;
    tries.set(name, sent);
    const forget = (): void => void (tries.get(name) === sent && tries.delete(name));
    void sent.then(forget, () => undefined);
    return sent;
  }

  /** What an earlier commit has under way with the same lock is not sent again. */
  private outdate(task: PreparedTask): void {
    const lock = lockOf(task);
    if (lock === undefined) return;
    const earlier = this.last.get(lock);
    if (earlier) this.outdated.add(earlier);
    this.last.set(lock, task);
  }

  private end(task: PreparedTask): void {
    const lock = lockOf(task);
    if (lock !== undefined && this.last.get(lock) === task) this.last.delete(lock);
  }

  private settle(task: PreparedTask, reply: EnqueueReply): void {
    const { id, type, queue } = task.request.message;
    const { ok, error }: EnqueueResult = resultOf(task, reply, this.deps.events);
    if (!ok) this.deps.events?.emit('refusedAfterCommit', { task: { id, type, queue }, error });
  }
}

/** Of a task of which the last counts. */
function lockOf({ repeats, request }: PreparedTask): string | undefined {
  if (!repeats) return undefined;
  const { policy, lock } = (request as RepeatRequest).repeat;
  return LAST_COUNTS.has(policy) ? lock : undefined;
}

/** A task of this id was stored by an earlier call, if the id was made for it. */
function known(task: PreparedTask, reply: EnqueueReply): EnqueueReply {
  const { message, madeId } = task.request;
  if (!madeId || reply instanceof Error || reply instanceof Unacknowledged) return reply;
  const isOwn = typeof reply === 'string' ? reply === 'conflict' : reply.owner?.id === message.id;
  return isOwn ? 'enqueued' : reply;
}
