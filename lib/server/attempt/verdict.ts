import { LEASE_SECONDS, type LeasedTask, type StoredResult } from '../../broker/broker.js';
import { TECHNICAL_RETENTION } from '../../broker/links.js';
import { ceilSeconds, floorSeconds, toDate, type Clock } from '../../clock.js';
import { findCode, hasCode } from '../../error-code.js';
import {
  LeaseExpiredError,
  SuspensionSwallowedError,
  TaskCrashedError,
  TaskExpiredError,
  TaskUndoneError,
} from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
import { type Crash, CRASHES_HEADER, crashInWords, withCrash } from '../../wire/crashes.js';
import { type Expiry, EXPIRY_HEADER } from '../../wire/expiry.js';
import { withFailedStep } from '../../wire/failed-step.js';
import { beginUndoing, endUndoing, isUndoing } from '../../wire/undoing.js';
import type { TaskMessage } from '../../wire/message.js';
import { ActiveTask, type Verdict } from './active-task.js';
import { type AttemptHistory, isRecovered } from './attempt-history.js';
import type { AttemptServices } from './attempt-services.js';
import { errorText } from './error-text.js';
import { runsSteps } from './handler.js';
import { type Compensations, undoCheckpoint } from './compensations.js';
import type { Suspension } from './step-work.js';
import type { UndoRecord } from './checkpoint.js';
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
  readonly history: AttemptHistory;
  /** How often the server of a task may die before the task is archived. */
  readonly maxCrashes: number;
}

/**
 * Decides what becomes of an attempt: asynq's success and failure paths (wire-protocol 5.5). Writes
 * nothing.
 */
export class Verdicts {
  constructor(private readonly options: VerdictOptions) {}

  success(task: ActiveTask, result: unknown): Verdict {
    const { lease, message, handlerSteps } = task;
    if (handlerSteps) {
      const { mustGoOnUndoing: goesOn, misfit } = handlerSteps.records;
      const { suspension } = handlerSteps.work;
      if (goesOn && !isUndoing(message)) return this.undo(task, goesOn.error, goesOn.outcome);
      if (suspension) return this.failure(task, new SuspensionSwallowedError(suspension.step));
      if (misfit) return this.failure(task, misfit);
    }
    if (message.retention <= 0 || message.retention === TECHNICAL_RETENTION) {
      const uniqueKey = message.uniqueKey;
      if (!task.links) return { outcome: 'done', settlement: { kind: 'done', lease, uniqueKey }, result };
      const [first] = task.links;
      if (first?.k === 'b' && task.links.length === 1) {
        return { outcome: 'done', settlement: { kind: 'done', lease, uniqueKey, member: first.batch }, result };
      }
      // A run keeps the results of its steps, and a handler those of tasks that it calls; nobody else who waits reads them.
      const step = task.linkOf('r');
      const kept = step || task.linkOf('s') ? this.encoded(task, result) : undefined;
      return { outcome: 'done', settlement: { kind: 'done', lease, uniqueKey, result: kept, step }, result };
    }
    const completedAt = floorSeconds(this.options.clock.now());
    const settlement = {
      kind: 'complete',
      lease,
      message: { ...message, completedAt },
      expiresAt: Math.min(completedAt + message.retention, Number.MAX_SAFE_INTEGER),
      result: this.encoded(task, result),
      attempt: this.options.history.completed(task),
    } as const;
    return { outcome: 'completed', settlement, result };
  }

  failure(task: ActiveTask, error: unknown): Verdict {
    const { work, records, compensations } = task.handlerSteps ?? {};
    if (compensations?.undone) return this.undone(task, compensations.undone);
    const goesOn = records?.mustGoOnUndoing;
    if (goesOn && !isUndoing(task.message)) return this.undo(task, goesOn.error, goesOn.outcome);
    const suspension = work?.suspension;
    if (suspension && hasCode(error, 'ASYNQ_TASK_SUSPENDED')) return this.suspended(task, suspension);
    if (suspension && work!.swallows && !hasCode(error, 'ASYNQ_SUSPENSION_SWALLOWED') && !task.aborted) {
      return this.failure(task, new SuspensionSwallowedError(suspension.step, error));
    }
    if (!hasCode(error, 'ASYNQ_POSTPONE_TASK')) this.options.hooks.onError(task, error);
    return this.decide(task, error, this.options.clock.now());
  }

  /**
   * The server of a task went away: asynq's failure path without the error hook. The retry delay
   * counts from that server's last sign of life, so that the minute until it was missed is not
   * waited twice. A task that kills one server after the other backs off all the same, and is archived at `maxCrashes`. What is stored of the
   * steps of a task that has no handler here says whether they are to be undone elsewhere.
   */
  async leaseExpired({ lease, message }: LeasedTask, crash: Omit<Crash, 'at'>): Promise<Verdict> {
    const { services, clock, mux, maxCrashes } = this.options;
    const at = (lease.expiresAt - LEASE_SECONDS) * 1000;
    const { headers, crashes } = withCrash(message.headers, { at, ...crash });
    const task = new ActiveTask(services, { lease, message: { ...message, headers } }, clock.now());
    task.handler = mux.find(task.type);
    const isSuspect = crashes.count >= maxCrashes;
    const error = isSuspect
      ? new TaskCrashedError(crashes.count, crashes.last.map(crashInWords))
      : new LeaseExpiredError();
    if (!task.handler) await task.stepsOfHandler.records.tryToLoad();
    return this.decide(task, error, at);
  }

  /**
   * The server stops before the handler is done: another server runs the task again, nothing is
   * counted.
   */
  /** @param countedAt see Settlement: its start was counted, and it does not start */
  requeue({ lease }: ActiveTask, countedAt?: number): Verdict {
    return {
      outcome: 'requeued',
      settlement: { kind: 'requeue', lease, countedAt },
    };
  }

  /** The handler goes on later: nothing has failed, so no hook is called. */
  private suspended({ lease, message }: ActiveTask, { step: _, ...sleep }: Suspension): Verdict {
    return { outcome: 'suspended', settlement: { kind: 'sleep', lease, ...sleep, message: asBegun(message) } };
  }

  /**
   * Whether the task, which has failed for good, has steps that are to be undone. What is not known is so: the handler is called once more, and
   * finds that there is nothing to undo.
   */
  private mustUndo({ message, handler, handlerSteps }: ActiveTask): boolean {
    if (isUndoing(message)) return false;
    return handlerSteps?.compensations.isUsed ?? (handler !== undefined && runsSteps(handler));
  }

  /** The handler is called again, to undo its steps. */
  private undo(task: ActiveTask, reason: string, outcome: UndoRecord['outcome'], error?: unknown): Verdict {
    const now = this.options.clock.now();
    const checkpoint = undoCheckpoint({ error: reason, outcome, at: now }, task.handlerSteps?.records);
    const message = beginUndoing({ ...task.message, errorMsg: reason, lastFailedAt: floorSeconds(now) });
    const sleep = {
      kind: 'sleep',
      lease: task.lease,
      wakeAt: floorSeconds(now),
      message,
      checkpoint,
      atOnce: true,
      attempt: error === undefined ? undefined : this.options.history.failed(task, error, false),
    } as const;
    return { outcome: 'suspended', settlement: sleep, error };
  }

  /** The task ends as it would have ended before its steps were undone. */
  private undone(task: ActiveTask, { error: reason, outcome, steps }: NonNullable<Compensations['undone']>): Verdict {
    const note = steps.length > 0 ? `; undone: ${steps.join(', ')}` : '';
    const stored = new TaskUndoneError(reason, steps); // its text may be as long as one can be: the note is stored behind it
    const error = new TaskUndoneError(reason + note, steps);
    return { ...(outcome === 'revoke' ? this.revoke(task, error) : this.archive(task, stored, note)), error };
  }

  /** A limit was reached before the attempt began. */
  wait({ lease }: ActiveTask, waitlist: string): Verdict {
    return { outcome: 'postponed', settlement: { kind: 'wait', lease, waitlist } };
  }

  /** No attempt began in time: nothing has failed, so no hook is called. */
  expired(task: ActiveTask, { at, policy }: Expiry): Verdict {
    const error = new TaskExpiredError(toDate(at), new Date(task.startedAt));
    return policy === 'drop' ? this.revokeAtOnce(task, error) : this.archiveAtOnce(task, error);
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
      case hasCode(error, 'ASYNQ_STEP_NOT_STORED') && !hasCode(error, 'ASYNQ_SKIP_RETRY'): // nothing of the task has failed
        return this.retry(task, error, failedAt, false);
      case task.retried >= task.maxRetry:
      case hasCode(error, 'ASYNQ_SKIP_RETRY'):
      case error instanceof TaskCrashedError:
      case hasCode(error, 'ASYNQ_INVALID_STEP'):
      case hasCode(error, 'ASYNQ_STEP_FAILED'):
      case hasCode(error, 'ASYNQ_SIGNAL_TIMEOUT'): // each attempt would get it again
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

  private revoke(task: ActiveTask, error: unknown): Verdict {
    return this.mustUndo(task) ? this.undo(task, errorText(error), 'revoke', error) : this.revokeAtOnce(task, error);
  }

  private revokeAtOnce({ lease, message, links }: ActiveTask, error: unknown): Verdict {
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
    if (this.mustUndo(task)) return this.undo(task, errorText(error) + note, 'archive', error);
    return this.archiveAtOnce(task, error, note + stillToUndo(task));
  }

  private archiveAtOnce(task: ActiveTask, error: unknown, note = ''): Verdict {
    const failed = withFailedStep(this.failed(task, error), stepOf(error));
    const message = endUndoing(note === '' ? failed : { ...failed, errorMsg: failed.errorMsg + note });
    // A recoverer does not know who waits for the task.
    const reason = task.links || isRecovered(error) ? message.errorMsg : undefined;
    const attempt = this.options.history.failed(task, error, false);
    return { outcome: 'archived', settlement: { kind: 'archive', lease: task.lease, message, reason, attempt }, error };
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
      attempt: this.options.history.failed(task, error, countAsFailure),
    } as const;
    return { outcome: 'retry', settlement, error };
  }

  private failed({ message }: ActiveTask, error: unknown): TaskMessage {
    const failed = { ...message, errorMsg: errorText(error), lastFailedAt: floorSeconds(this.options.clock.now()) };
    return withFailedStep(failed, undefined);
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

/** The message of a task that has begun, and ended without a crash; undefined when the stored one is as good. */
function asBegun(message: TaskMessage): TaskMessage | undefined {
  const { [EXPIRY_HEADER]: expiry, [CRASHES_HEADER]: crashes, ...headers } = message.headers ?? {};
  return expiry === undefined && crashes === undefined ? undefined : { ...message, headers };
}

/** What to add to the error of a task that could not undo all its steps. */
function stillToUndo({ handlerSteps }: ActiveTask): string {
  const { records, compensations } = handlerSteps ?? {};
  const undo = records?.mustGoOnUndoing;
  if (!undo || compensations!.undone) return '';
  const { current } = compensations!;
  const where = current === undefined ? '' : ` (it was at step "${current}")`;
  return `; not all its steps are undone${where}: run the task by hand to go on with that. It had failed with: ${undo.error}`;
}

/** The step that has failed for good, if the task fails with that. */
function stepOf(error: unknown): string | undefined {
  const { step } = (findCode(error, 'ASYNQ_STEP_FAILED') ?? {}) as { step?: unknown };
  return typeof step === 'string' ? step : undefined;
}

/** Anything may have the code of a PostponeTask, and a property that throws. */
function delayOf(error: unknown): unknown {
  try {
    return (findCode(error, 'ASYNQ_POSTPONE_TASK') as { delay?: unknown }).delay;
  } catch {
    return undefined;
  }
}
