import { hasCode } from '../../error-code.js';
import { StepFailedError } from '../../errors.js';
import { decodeJson } from '../../task/codec.js';
import type { StepRetry } from '../../task/steps.js';
import { failedStepOf } from '../../wire/failed-step.js';
import type { Checkpoint } from './checkpoint.js';
import type { Compensations, Undo } from './compensations.js';
import { errorText } from './error-text.js';
import type { HandlerCall } from './handler-call.js';
import { observed } from './step-observer.js';
import { retryDelay } from './step-options.js';
import type { Step } from './step-records.js';
import { encodeStepResult } from './step-result.js';
import { withinStep } from './step-work.js';

/** Errors of a step that say what becomes of the task, or that the attempt is over: no retries of the step. */
const DECISIONS = [
  'ASYNQ_SKIP_RETRY',
  'ASYNQ_REVOKE_TASK',
  'ASYNQ_POSTPONE_TASK',
  'ASYNQ_INVALID_STEP',
  'ASYNQ_TASK_SUSPENDED',
  'ASYNQ_LEASE_EXPIRED',
];

/** What a step `run` is to do. */
export interface StepRun {
  readonly work: () => unknown;
  /** `undefined`: the task is retried instead. */
  readonly retry: StepRetry | undefined;
  readonly undo: Undo | undefined;
}

/** Steps that do their work here, once: with retries of their own, and compensations. */
export class StepRuns {
  constructor(
    private readonly call: HandlerCall,
    private readonly compensations: Compensations,
  ) {}

  /** Does what is not done yet. Returns the result. @throws what the work has thrown; StepFailedError when it has failed for good */
  async runOnce(step: Step, run: StepRun): Promise<unknown> {
    const { records, attempt, work } = this.call;
    await work.inTurn(step);
    const before = records.find(step, 'run', ({ ended }) => ended !== undefined);
    if (before?.ended !== undefined && !before.failed) return this.succeeded(step, before.result ?? '', run);
    const failed = before?.failed && failureOf(step, before);
    // Who runs an archived task by hand wants the step that it failed with to be tried once more; to undo the others it is not.
    const { lastFailedAt } = attempt.message;
    const isFailedWith = failedStepOf(attempt.message) === step.name;
    const isAnew = failed && !records.loaded!.isUndoing && before.tried !== lastFailedAt && isFailedWith;
    if (failed && !isAnew) throw failed;
    const { now } = this;
    if (!failed && before?.until !== undefined && before.until > now) return work.suspend(step, before.until);
    work.requireAttempt();
    const at = (isAnew ? undefined : before?.at) ?? now;
    const did = await work.beside(this.tryOnce(step, run, at));
    if ('result' in did) return this.succeeded(step, did.result, run);
    const { error } = did;
    const { retry } = run;
    if (!retry || attempt.aborted || DECISIONS.some((code) => hasCode(error, code))) {
      records.keepPlace(step);
      throw error;
    }
    const tries = (isAnew ? 0 : (before?.tries ?? 0)) + 1;
    const tried = isAnew ? lastFailedAt : before?.tried;
    return this.failOnce(step, { n: step.n, kind: 'run', at, tries, tried, error: errorText(error) }, retry, error);
  }

  private get now(): number {
    return this.call.deps.clock.now();
  }

  /** Returns what the work has brought, once that is stored, or what it has thrown. */
  private async tryOnce(
    step: Step,
    { work, undo }: StepRun,
    at: number,
  ): Promise<{ readonly result: string } | { readonly error: unknown }> {
    const { deps, records } = this.call;
    let failure: { readonly error: unknown } | undefined;
    const doIt = async (): Promise<string> => {
      let value: unknown;
      try {
        value = await withinStep(step.name, async () => work());
      } catch (error) {
        failure = { error };
        throw error;
      }
      const result = encodeStepResult(value, step.name, deps.maxBytes);
      const checkpoint = { n: step.n, kind: 'run', at, ended: this.now, result } as const;
      await records.write(step, undo ? { ...checkpoint, undo: true } : checkpoint);
      return result;
    };
    try {
      return { result: await observed(deps.observer, { name: step.name, kind: 'run' }, doIt) };
    } catch (error) {
      if (failure) return failure;
      records.keepPlace(step);
      throw error;
    }
  }

  private succeeded(step: Step, result: string, { undo }: StepRun): unknown {
    if (undo) this.compensations.add({ step, undo, result });
    return decodeJson(result);
  }

  /** The work of a step with retries of its own has failed. */
  private async failOnce(step: Step, checkpoint: Checkpoint, retry: StepRetry, error: unknown): Promise<never> {
    const { records, work } = this.call;
    const tries = checkpoint.tries!;
    if (tries <= retry.max) {
      const until = this.now + retryDelay(step.name, retry, tries, error);
      return work.suspend(step, until, { ...checkpoint, until });
    }
    await records.write(step, { ...checkpoint, ended: this.now, failed: true });
    throw failureOf(step, checkpoint, error);
  }
}

function failureOf({ name }: Step, { tries = 1, error = '' }: Checkpoint, cause?: unknown): StepFailedError {
  const times = tries === 1 ? 'once' : `${tries} times`;
  return new StepFailedError(name, `step "${name}" has failed ${times}, and is not tried again: ${error}`, { cause });
}
