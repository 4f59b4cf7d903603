import type { Clock } from '../../clock.js';
import type { AsynqError } from '../../errors.js';
import { DeadlineExceededError, HandlerNotFoundError, LeaseExpiredError, ShutdownError } from '../../errors.js';
import { isThenable } from '../../async.js';
import type { AsynqEvents } from '../../events/events.js';
import type { Tracing } from '../../tracing/tracing.js';
import type { ActiveTask, Verdict } from './active-task.js';
import { Deadlines } from './deadlines.js';
import type { TaskHandlerEntry } from './handler.js';
import type { Limiter } from './limiter.js';
import type { Mux } from './mux.js';
import type { Verdicts } from './verdict.js';

/** Milliseconds after which a handler that ignores its abort signal is reported. */
const STUCK_AFTER = 10_000;

export interface RunnerOptions {
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly tracing?: Tracing | undefined;
  readonly mux: Mux;
  readonly verdicts: Verdicts;
  /** What a task of this handler has to pass before it runs. */
  readonly limiterOf: (entry: TaskHandlerEntry) => Limiter | undefined;
  /** Every task whose lease is held. */
  readonly held: () => Iterable<ActiveTask>;
  /** The attempt has its verdict: settle it. */
  readonly onVerdict: (task: ActiveTask) => void;
  /** The handler's slot is free. */
  readonly onSlotFree: (task: ActiveTask) => void;
}

/**
 * Runs handlers. An attempt ends with the first of: the handler settles, its deadline passes, it is cancelled, its lease is
 * lost. What comes first is the verdict; a handler that goes on after that keeps its slot, and its result changes nothing.
 */
export class Runner {
  /** Handlers that have not settled. */
  running = 0;
  private readonly deadlines: Deadlines;

  constructor(private readonly options: RunnerOptions) {
    this.deadlines = new Deadlines(options.clock, options.held, (task) => this.fail(task, new DeadlineExceededError()));
  }

  /** Starts the task's handler, as soon as its limits let it; never throws. */
  start(task: ActiveTask): void {
    this.running += 1;
    const entry = this.options.mux.find(task.type);
    if (!entry) return this.refuse(task, new HandlerNotFoundError(task.type));
    const limiter = this.options.limiterOf(entry);
    if (limiter) limiter.enter(task);
    else this.run(task, entry);
  }

  /** The limits of its handler let it. */
  admit(task: ActiveTask): void {
    if (task.verdict || task.lost || task.aborted) return this.settled(task, false, task.aborted);
    this.run(task, this.options.mux.find(task.type)!);
  }

  /** A limit of its handler was reached: it waits in a line, as though it had not been taken. */
  defer(task: ActiveTask, waitlist: string): void {
    if (!task.verdict && !task.lost) this.conclude(task, this.options.verdicts.wait(task, waitlist));
    this.settled(task, false, undefined);
  }

  private run(task: ActiveTask, entry: TaskHandlerEntry): void {
    const { events } = this.options;
    if (task.deadlineAt <= task.startedAt) return this.refuse(task, new DeadlineExceededError());
    task.span = this.options.tracing?.startProcess(task);
    if (events.wants('taskStarted')) this.tellStarted(task);
    this.deadlines.watch(task);
    this.call(task, entry.handle);
  }

  /** What listeners do belongs to its trace. */
  private tellStarted(task: ActiveTask): void {
    const { retried, maxRetry, waited, span } = task;
    const tell = (): void => this.options.events.emit('taskStarted', { task, retried, maxRetry, waited });
    if (span) span.run(tell);
    else tell();
  }

  /** A failure without a handler. */
  private refuse(task: ActiveTask, error: AsynqError): void {
    task.span = this.options.tracing?.startProcess(task);
    this.settled(task, false, error);
  }

  /** Ends the attempt as a failure for a reason from outside, while the handler may still run. */
  fail(task: ActiveTask, reason: AsynqError): void {
    if (task.verdict || task.lost || task.handlerSettled) return;
    task.abort(reason);
    this.watchStuck(task, reason);
    this.conclude(task, this.options.verdicts.failure(task, reason, this.options.mux.find(task.type)));
  }

  /** The lease is another's: nothing may be written any more. */
  leaseLost(task: ActiveTask): void {
    task.lost = true;
    if (task.handlerSettled) return;
    const reason = new LeaseExpiredError();
    task.span?.end('lost', reason);
    task.abort(reason);
    this.watchStuck(task, reason);
  }

  /** Asks the handler to stop; what it makes of that is still the verdict. */
  interrupt(task: ActiveTask, reason: AsynqError): void {
    if (task.handlerSettled) return;
    task.abort(reason);
  }

  /** Gives the attempt a verdict from outside, unless it has one. */
  conclude(task: ActiveTask, verdict: Verdict): void {
    if (task.verdict || task.lost) return;
    task.verdict = verdict;
    task.endedAt = this.options.clock.now();
    task.span?.end(verdict.outcome, verdict.error);
    this.options.onVerdict(task);
  }

  close(): void {
    this.deadlines.close();
  }

  private call(task: ActiveTask, handle: (task: ActiveTask) => unknown): void {
    let returned: unknown;
    let promised: Promise<unknown> | undefined;
    try {
      returned = task.span ? task.span.run(() => handle(task)) : handle(task);
      // What is no real promise may throw when it is asked, and answer with one more that is to be waited for.
      promised = isThenable(returned) ? Promise.resolve(returned) : undefined;
    } catch (error) {
      return this.settled(task, false, error);
    }
    if (!promised) return this.settled(task, true, returned);
    promised.then(
      (result) => this.settled(task, true, result),
      (error: unknown) => this.settled(task, false, error),
    );
  }

  private settled(task: ActiveTask, succeeded: boolean, value: unknown): void {
    task.handlerSettled = true;
    this.running -= 1;
    if (!task.verdict && !task.lost) this.conclude(task, this.judge(task, succeeded, value));
    this.options.onSlotFree(task);
  }

  private judge(task: ActiveTask, succeeded: boolean, value: unknown): Verdict {
    const { verdicts, mux } = this.options;
    if (succeeded) return verdicts.success(task, value);
    if (task.aborted instanceof ShutdownError) return verdicts.requeue(task);
    return verdicts.failure(task, value, mux.find(task.type));
  }

  private watchStuck(task: ActiveTask, reason: AsynqError): void {
    this.options.clock.after(STUCK_AFTER, () => {
      if (task.handlerSettled) return;
      this.options.events.emit('handlerStuck', { task, reason, seconds: STUCK_AFTER / 1000 });
    });
  }
}
