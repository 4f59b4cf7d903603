import { CANCEL_OUTCOMES, type Cancellation, type CancelOutcome } from '../broker/cancellation.js';
import { InvalidOptionError } from '../errors.js';
import { describe, nearest, rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';

export interface CancelOptions {
  /** The reason of the handler's signal and the stored error, up to 1,000 characters. Default: asynq's `context canceled`. */
  readonly reason?: string;
  /**
   * What happens to the task. `retry`: an ordinary failure as in asynq, counted, and possibly the last; `archive`: as by SkipRetry;
   * `delete`: as by RevokeTask, together with the unique lock it holds. Default `retry`.
   */
  readonly outcome?: CancelOutcome;
}

const MAX_REASON_LENGTH = 1_000;

/** @param now milliseconds since the epoch @throws InvalidOptionError */
export function toCancellation(id: string, options: CancelOptions, now: number): Cancellation {
  requireNonBlank(id, 'task ID', InvalidOptionError);
  requireObject(options, 'the options of cancelProcessing', InvalidOptionError);
  rejectUnknownKeys(options, ['reason', 'outcome'], 'option of cancelProcessing', InvalidOptionError);
  const { reason, outcome = 'retry' } = options;
  if (reason !== undefined) requireNonBlank(reason, 'reason', InvalidOptionError);
  if (reason !== undefined && reason.length > MAX_REASON_LENGTH) {
    throw new InvalidOptionError(`reason has ${reason.length} characters; at most ${MAX_REASON_LENGTH} are allowed`);
  }
  if (!CANCEL_OUTCOMES.includes(outcome)) {
    const near = typeof outcome === 'string' ? nearest(outcome, CANCEL_OUTCOMES) : undefined;
    const remedy = near ? `did you mean "${near}"?` : `it must be one of ${CANCEL_OUTCOMES.join(', ')}`;
    throw new InvalidOptionError(`outcome is ${describe(outcome)}; ${remedy}`);
  }
  return { id, at: now, outcome, reason };
}
