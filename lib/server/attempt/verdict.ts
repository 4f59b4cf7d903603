import { LEASE_SECONDS } from '../../broker/broker.js';
import { ceilSeconds, floorSeconds, type Clock } from '../../clock.js';
import { LeaseExpiredError } from '../../errors.js';
import { watchRejection } from '../../async.js';
import type { AsynqEvents } from '../../events/events.js';
import type { IsFailure, RetryDelay } from '../../task/context.js';
import { defaultRetryDelay } from '../../task/retry-delay.js';
import type { ActiveTask, Verdict } from './active-task.js';
import { errorText, findCode, hasCode } from './error-text.js';
import type { TaskHandlerEntry } from './handler.js';

/** Unix seconds. A Date holds nothing later, and a broker refuses what is no safe integer: with the whole batch it is part of. */
const LATEST_RETRY = 8.64e12;

/** Called for every failed attempt, before its outcome is stored (asynq's ErrorHandler). Synchronous. */
export type OnError = (error: unknown, task: ActiveTask) => void;

export interface VerdictOptions {
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly encodeResult: (result: unknown) => Buffer | undefined;
  readonly retryDelay?: RetryDelay;
  readonly isFailure?: IsFailure;
  readonly onError?: OnError;
}

/** Decides what becomes of an attempt: asynq's success and failure paths (section 5.5). Writes nothing. */
export class Verdicts {
  constructor(private readonly options: VerdictOptions) {}

  success(task: ActiveTask, result: unknown): Verdict {
    const { lease, message } = task;
    if (message.retention <= 0) {
      return { outcome: 'done', settlement: { kind: 'done', lease, uniqueKey: message.uniqueKey }, result };
    }
    const completedAt = floorSeconds(this.options.clock.now());
    const settlement = {
      kind: 'complete',
      lease,
      message: { ...message, completedAt },
      expiresAt: Math.min(completedAt + message.retention, Number.MAX_SAFE_INTEGER),
      result: this.resultBytes(task, result),
    } as const;
    return { outcome: 'completed', settlement, result };
  }

  failure(task: ActiveTask, error: unknown, entry: TaskHandlerEntry | undefined): Verdict {
    const postponed = findCode(error, 'ASYNQ_POSTPONE_TASK');
    if (postponed) return this.postpone(task, error, delayOf(postponed));
    const { onError } = this.options;
    if (onError) this.guard('onError', task, () => this.watch('onError', task, onError(error, task)), undefined);
    const { lease, message } = task;
    if (hasCode(error, 'ASYNQ_REVOKE_TASK')) {
      return { outcome: 'revoked', settlement: { kind: 'done', lease, uniqueKey: message.uniqueKey }, error };
    }
    return this.retryOrArchive(task, error, entry);
  }

  /** The server goes away before the handler is done: another server starts the task anew, nothing is counted. */
  requeue(task: ActiveTask): Verdict {
    return { outcome: 'requeued', settlement: { kind: 'requeue', lease: task.lease } };
  }

  /** A limit was reached before the attempt began. */
  wait({ lease }: ActiveTask, waitlist: string): Verdict {
    return { outcome: 'postponed', settlement: { kind: 'wait', lease, waitlist } };
  }

  /**
   * The recoverer's view of a task whose server went away: asynq's failure path without the error hook. The retry delay counts
   * from the last sign of life of that server, so that the minute for which nobody could know is not waited twice; a task that
   * kills one server after the other backs off all the same.
   */
  leaseExpired(task: ActiveTask, entry: TaskHandlerEntry | undefined): Verdict {
    const lastSeen = (task.lease.expiresAt - LEASE_SECONDS) * 1000;
    return this.retryOrArchive(task, new LeaseExpiredError(), entry, lastSeen);
  }

  /** The stored message stays as it is: no attempt was made. */
  private postpone(task: ActiveTask, error: unknown, delay: unknown): Verdict {
    const { lease, message } = task;
    const milliseconds = typeof delay === 'number' && delay >= 0 ? delay : 0;
    const retryAt = Math.min(ceilSeconds(this.options.clock.now() + milliseconds), LATEST_RETRY);
    return {
      outcome: 'postponed',
      settlement: { kind: 'retry', lease, message, retryAt, countAsFailure: false },
      error,
    };
  }

  /** @param failedAt when the attempt failed, in milliseconds since the epoch */
  private retryOrArchive(
    task: ActiveTask,
    error: unknown,
    entry: TaskHandlerEntry | undefined,
    failedAt = this.options.clock.now(),
  ): Verdict {
    const { lease, message } = task;
    const now = this.options.clock.now();
    const failed = { ...message, errorMsg: errorText(error), lastFailedAt: floorSeconds(now) };
    if (message.retried >= message.maxRetry || hasCode(error, 'ASYNQ_SKIP_RETRY')) {
      return { outcome: 'archived', settlement: { kind: 'archive', lease, message: failed }, error };
    }
    const countAsFailure = this.isFailure(task, error, entry);
    const settlement = {
      kind: 'retry',
      lease,
      message: countAsFailure ? { ...failed, retried: message.retried + 1 } : failed,
      retryAt: Math.min(
        Math.max(ceilSeconds(failedAt + this.delay(task, error, entry)), floorSeconds(now)),
        LATEST_RETRY,
      ),
      countAsFailure,
    } as const;
    return { outcome: 'retry', settlement, error };
  }

  private isFailure(task: ActiveTask, error: unknown, entry: TaskHandlerEntry | undefined): boolean {
    const isFailure = entry?.isFailure ?? this.options.isFailure;
    if (!isFailure) return true;
    return this.guard('isFailure', task, () => Boolean(this.watch('isFailure', task, isFailure(error))), true);
  }

  private delay(task: ActiveTask, error: unknown, entry: TaskHandlerEntry | undefined): number {
    const retryDelay = entry?.retryDelay ?? this.options.retryDelay;
    if (!retryDelay) return defaultRetryDelay(task.retried);
    const checked = (): number => {
      const delay = this.watch('retryDelay', task, retryDelay(task.retried, error, task));
      if (typeof delay === 'number' && Number.isFinite(delay)) return Math.max(0, delay);
      throw new TypeError(`retryDelay answered ${String(delay)}; it must answer a number of milliseconds`);
    };
    return this.guard('retryDelay', task, checked, undefined) ?? defaultRetryDelay(task.retried);
  }

  private resultBytes(task: ActiveTask, result: unknown): Buffer | undefined {
    if (result === undefined) return undefined;
    try {
      return this.options.encodeResult(result);
    } catch (error) {
      this.options.events.emit('resultDropped', { task, error });
      return undefined;
    }
  }

  /** What a hook returned: if it is a promise after all, its rejection is reported like what a hook throws. */
  private watch<T>(hook: string, task: ActiveTask, returned: T): T {
    watchRejection(returned, (error) => this.reportHook(hook, task, error));
    return returned;
  }

  /** A user's hook must not decide over a task by throwing. */
  private guard<T>(hook: string, task: ActiveTask, call: () => T, fallback: T): T {
    try {
      return call();
    } catch (error) {
      this.reportHook(hook, task, error);
      return fallback;
    }
  }

  private reportHook(hook: string, { id, type, queue }: ActiveTask, error: unknown): void {
    this.options.events.emit('hookFailed', { hook, error, task: { id, type, queue } });
  }
}

/** Anything may have the code of a PostponeTask; nothing that is thrown may throw in its turn. */
function delayOf(postponed: { delay?: unknown }): unknown {
  try {
    return postponed.delay;
  } catch {
    return undefined;
  }
}
