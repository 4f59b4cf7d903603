import type { Broker } from '../../broker/broker.js';
import { type AsynqError, HandlerNotFoundError } from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
import type { Tracing } from '../../tracing/tracing.js';
import type { Expiry } from '../../wire/expiry.js';
import { UNIQUE_UNTIL_HEADER, UNTIL_STARTED } from '../../wire/unique-until.js';
import type { ActiveTask, Verdict } from './active-task.js';
import { passedExpiry, reportExpired } from './expiry.js';
import { runsSteps, type TaskHandlerEntry } from './handler.js';
import type { Limiter } from './limiter.js';
import type { Limiters } from './limiters.js';
import type { Mux } from './mux.js';
import type { NewerPayloads } from './newer-payloads.js';
import { price } from './price.js';
import type { Verdicts } from './verdict.js';

export interface AdmissionOptions {
  readonly broker: Pick<Broker, 'uniqueness'>;
  readonly events: AsynqEvents;
  readonly tracing: Tracing | undefined;
  readonly mux: Mux;
  readonly limiters: Limiters;
  readonly newerPayloads: NewerPayloads;
  readonly verdicts: Verdicts;
}

/** What happens to a claimed task after the decision. */
export interface Admitted {
  run(task: ActiveTask, handler: TaskHandlerEntry): void;
  refuse(task: ActiveTask, error: AsynqError): void;
  conclude(task: ActiveTask, verdict: Verdict): void;
  end(task: ActiveTask, succeeded: boolean, value: unknown): void;
}

/**
 * Decides whether a claimed task may run now. One that has expired ends; one whose payload is newer than its handler, or that a limit
 * of its handler holds back, is deferred to a waitlist.
 */
export class Admission {
  constructor(
    private readonly options: AdmissionOptions,
    private readonly admitted: Admitted,
  ) {}

  /** @param isLimited `false`: no limit counts it or holds it back */
  admit(task: ActiveTask, isLimited: boolean): void {
    const handler = (task.handler = this.options.mux.find(task.type));
    const expiry = task.message.headers && passedExpiry(task);
    if (!expiry) return this.admitTo(handler, task, isLimited);
    if (task.isBare || (handler && !runsSteps(handler))) return this.expire(task, expiry);
    void this.expireUnlessBegun(task, expiry, isLimited);
  }

  private admitTo(handler: TaskHandlerEntry | undefined, task: ActiveTask, isLimited: boolean): void {
    const { newerPayloads, limiters } = this.options;
    if (!handler) return void this.refuseUnknown(task);
    const newer = task.message.headers && newerPayloads.waitlistOf(task, handler);
    if (newer) return this.defer(task, newer);
    const limiter = limiters.of(handler, task);
    if (!limiter) return this.begin(task, handler);
    if (limiter instanceof Error) return this.admitted.refuse(task, limiter);
    const unpriced = limiter.hasCosts ? price(task, limiter.limits.rate) : undefined;
    if (unpriced) return this.admitted.refuse(task, unpriced);
    if (!isLimited) return this.begin(task, handler);
    const admitted = limiter.admit(task);
    if (admitted === true) this.begin(task, handler);
    else if (admitted === false) this.defer(task, limiter.scope);
    else void this.admitLater(task, handler, limiter, admitted);
  }

  /** The limiter asks Redis; the attempt may end meanwhile. */
  private async admitLater(task: ActiveTask, handler: TaskHandlerEntry, limiter: Limiter, admitted: Promise<boolean>) {
    const isAdmitted = await admitted;
    const isLate = isAdmitted && this.options.limiters.isLate(task);
    if (isLate) await limiter.giveBack(task);
    if (!isAdmitted || isLate) this.defer(task, limiter.scope);
    else if (task.verdict || task.lost || task.aborted) this.admitted.end(task, false, task.aborted);
    else this.begin(task, handler);
  }

  /** It waits as if it had not been claimed. */
  private defer(task: ActiveTask, waitlist: string): void {
    this.admitted.conclude(task, this.options.verdicts.wait(task, waitlist));
    this.admitted.end(task, false, undefined);
  }

  /** A task of which a step is stored goes on, or is undone: an attempt that was interrupted, say, has begun it in time. */
  private async expireUnlessBegun(task: ActiveTask, expiry: Expiry, isLimited: boolean): Promise<void> {
    const { admitted, options } = this;
    let hasBegun = false;
    try {
      hasBegun = await task.stepsOfHandler.records.hasBegun();
    } catch {
      admitted.conclude(task, options.verdicts.requeue(task));
    }
    if (task.verdict || task.lost || task.aborted) return admitted.end(task, false, task.aborted);
    if (hasBegun) this.admitTo(task.handler, task, isLimited);
    else this.expire(task, expiry);
  }

  /** If this was its last attempt, its steps are to be undone by a server that has its handler: whether there are any is stored. */
  private async refuseUnknown(task: ActiveTask): Promise<void> {
    const { mux } = this.options;
    if (task.retried >= task.maxRetry && !task.isBare) await task.stepsOfHandler.records.tryToLoad();
    this.admitted.refuse(task, new HandlerNotFoundError(task.type, mux.nearest(task.type)));
  }

  private expire(task: ActiveTask, expiry: Expiry): void {
    const { events, tracing, verdicts } = this.options;
    task.span = tracing?.startProcess(task);
    reportExpired(events, task, expiry);
    this.admitted.conclude(task, verdicts.expired(task, expiry));
    this.admitted.end(task, false, undefined);
  }

  /** Frees the lock of a task that is unique until a handler begins. */
  private begin(task: ActiveTask, handler: TaskHandlerEntry): void {
    const { uniqueKey, headers } = task.message;
    if (uniqueKey !== '' && headers?.[UNIQUE_UNTIL_HEADER] === UNTIL_STARTED) void this.beginUnlocked(task, handler);
    else this.admitted.run(task, handler);
  }

  /** Without Redis the lock stays: the task goes back, as its handler would run while it keeps others out. */
  private async beginUnlocked(task: ActiveTask, handler: TaskHandlerEntry): Promise<void> {
    const { broker, verdicts } = this.options;
    try {
      await broker.uniqueness.release(task.queue, task.message.uniqueKey, task.id);
    } catch {
      this.admitted.conclude(task, verdicts.requeue(task));
    }
    if (task.verdict || task.lost || task.aborted) this.admitted.end(task, false, task.aborted);
    else this.admitted.run(task, handler);
  }
}
