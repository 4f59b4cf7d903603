import { LEASE_SECONDS, type LeasedTask, type StoredResult } from '../../broker/broker.js';
import { TECHNICAL_RETENTION } from '../../broker/links.js';
import { ceilSeconds, floorSeconds, toDate, type Clock } from '../../clock.js';
import { findCode, hasCode } from '../../error-code.js';
import { LeaseExpiredError, TaskExpiredError } from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
import type { Expiry } from '../../wire/expiry.js';
import type { TaskMessage } from '../../wire/message.js';
import { ActiveTask, type Verdict } from './active-task.js';
import type { AttemptServices } from './attempt-services.js';
import { errorText } from './error-text.js';
import type { Hooks } from './hooks.js';
import type { Mux } from './mux.js';

/** A Date holds nothing later. A broker refuses unsafe integers, and with one the whole batch. */
const LATEST_RETRY_SECONDS = 8.64e12;

export interface VerdictOptions {
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly mux: Mux;
  readonly services: AttemptServices;
  readonly hooks: Hooks;
}

/**
 * Decides what becomes of an attempt: asynq's success and failure paths (wire-protocol 5.5). Writes
 * nothing.
 */
export class Verdicts {
  constructor(private readonly options: VerdictOptions) {}

  success(task: ActiveTask, result: unknown): Verdict {
    const { lease, message } = task;
    if (message.retention <= 0 || message.retention === TECHNICAL_RETENTION) {
      const uniqueKey = message.uniqueKey;
      if (!task.links) return { outcome: 'done', settlement: { kind: 'done', lease, uniqueKey }, result };
      const [first] = task.links;
      if (first?.k === 'b' && task.links.length === 1) {
        return { outcome: 'done', settlement: { kind: 'done', lease, uniqueKey, member: first.batch }, result };
      }
      // A run keeps the results of its steps; nobody else who waits reads them.
      const step = task.linkOf('r');
      const kept = step && this.encoded(task, result);
      return { outcome: 'done', settlement: { kind: 'done', lease, uniqueKey, result: kept, step }, result };
    }
    const completedAt = floorSeconds(this.options.clock.now());
    const settlement = {
      kind: 'complete',
      lease,
      message: { ...message, completedAt },
      expiresAt: Math.min(completedAt + message.retention, Number.MAX_SAFE_INTEGER),
      result: this.encoded(task, result),
    } as const;
    return { outcome: 'completed', settlement, result };
  }

  failure(task: ActiveTask, error: unknown): Verdict {
    if (!hasCode(error, 'ASYNQ_POSTPONE_TASK')) this.options.hooks.onError(task, error);
    return this.decide(task, error, this.options.clock.now());
  }

  /**
   * The server of a task went away: asynq's failure path without the error hook. The retry delay
   * counts from that server's last sign of life, so that the minute until it was missed is not
   * waited twice. A task that kills one server after the other backs off all the same.
   */
  leaseExpired(leased: LeasedTask): Verdict {
    const { services, clock, mux } = this.options;
    const task = new ActiveTask(services, leased, clock.now());
    task.handler = mux.find(task.type);
    const lastSeenAt = (task.lease.expiresAt - LEASE_SECONDS) * 1000;
    return this.decide(task, new LeaseExpiredError(), lastSeenAt);
  }

  /**
   * The server stops before the handler is done: another server runs the task again, nothing is
   * counted.
   */
  requeue({ lease }: ActiveTask): Verdict {
    return { outcome: 'requeued', settlement: { kind: 'requeue', lease } };
  }

  /** A limit was reached before the attempt began. */
  wait({ lease }: ActiveTask, waitlist: string): Verdict {
    return { outcome: 'postponed', settlement: { kind: 'wait', lease, waitlist } };
  }

  /** No attempt began in time: nothing has failed, so no hook is called. */
  expired(task: ActiveTask, { at, policy }: Expiry): Verdict {
    const error = new TaskExpiredError(toDate(at), new Date(task.startedAt));
    return policy === 'drop' ? this.revoke(task, error) : this.archive(task, error);
  }

  /** The message cannot be decoded: it is stored as it is. */
  damaged({ lease }: Pick<ActiveTask, 'lease'>, error: Error): Verdict {
    const reason = errorText(error);
    return { outcome: 'archived', settlement: { kind: 'archive', lease, message: undefined, reason }, error };
  }

  /** The retry decision: the first rule that holds. @param failedAt milliseconds since the epoch */
  private decide(task: ActiveTask, error: unknown, failedAt: number): Verdict {
    switch (true) {
      case hasCode(error, 'ASYNQ_POSTPONE_TASK'):
        return this.postpone(task, error);
      case hasCode(error, 'ASYNQ_REVOKE_TASK'):
        return this.revoke(task, error);
      case task.retried >= task.maxRetry:
      case hasCode(error, 'ASYNQ_SKIP_RETRY'):
        return this.archive(task, error);
      case this.isPastDeadline(task):
        return this.archive(
          task,
          error,
          `; not retried, as its deadline ${toDate(task.message.deadline * 1000).toJSON()} has passed`,
        );
      case !this.options.hooks.isFailure(task, error):
        return this.retry(task, error, failedAt, false);
      default:
        return this.retry(task, error, failedAt, true);
    }
  }

  /** The stored message stays as it is: no attempt was made. */
  private postpone({ lease, message }: ActiveTask, error: unknown): Verdict {
    const delay = delayOf(error);
    const milliseconds = typeof delay === 'number' && delay >= 0 ? delay : 0;
    const retryAt = Math.min(ceilSeconds(this.options.clock.now() + milliseconds), LATEST_RETRY_SECONDS);
    const settlement = { kind: 'retry', lease, message, retryAt, countAsFailure: false } as const;
    return { outcome: 'postponed', settlement, error };
  }

  private revoke({ lease, message, links }: ActiveTask, error: unknown): Verdict {
    const settlement = {
      kind: 'done',
      lease,
      uniqueKey: message.uniqueKey,
      revoked: true,
      reason: links && errorText(error),
    } as const;
    return { outcome: 'revoked', settlement, error };
  }

  /** A retry could only fail, too. */
  private isPastDeadline({ message }: ActiveTask): boolean {
    return message.deadline > 0 && message.deadline * 1000 <= this.options.clock.now();
  }

  /** @param note what to add to the text of the error */
  private archive(task: ActiveTask, error: unknown, note = ''): Verdict {
    const failed = this.failed(task, error);
    const message = note === '' ? failed : { ...failed, errorMsg: failed.errorMsg + note };
    // A recoverer does not know who waits for the task.
    const reason = task.links || error instanceof LeaseExpiredError ? message.errorMsg : undefined;
    return { outcome: 'archived', settlement: { kind: 'archive', lease: task.lease, message, reason }, error };
  }

  private retry(task: ActiveTask, error: unknown, failedAt: number, countAsFailure: boolean): Verdict {
    const message = this.failed(task, error);
    const dueAt = ceilSeconds(failedAt + this.options.hooks.retryDelay(task, error));
    const settlement = {
      kind: 'retry',
      lease: task.lease,
      message: countAsFailure ? { ...message, retried: task.retried + 1 } : message,
      retryAt: Math.min(Math.max(dueAt, message.lastFailedAt), LATEST_RETRY_SECONDS),
      countAsFailure,
    } as const;
    return { outcome: 'retry', settlement, error };
  }

  private failed({ message }: ActiveTask, error: unknown): TaskMessage {
    return { ...message, errorMsg: errorText(error), lastFailedAt: floorSeconds(this.options.clock.now()) };
  }

  private encoded(task: ActiveTask, result: unknown): StoredResult | undefined {
    if (result === undefined) return undefined;
    try {
      return this.options.services.results.encode(result);
    } catch (error) {
      this.options.events.emit('resultDropped', { task, error });
      return undefined;
    }
  }
}

/** Anything may have the code of a PostponeTask, and a property that throws. */
function delayOf(error: unknown): unknown {
  try {
    return (findCode(error, 'ASYNQ_POSTPONE_TASK') as { delay?: unknown }).delay;
  } catch {
    return undefined;
  }
}
