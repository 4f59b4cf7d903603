import type { StepCall } from '../../broker/checkpoints.js';
import { InvalidStepError, LeaseExpiredError, StepFailedError } from '../../errors.js';
import { decodeResult } from '../../task/codec.js';
import { failedStepOf } from '../../wire/failed-step.js';
import type { Answer, Checkpoint } from './checkpoint.js';
import type { HandlerCall } from './handler-call.js';
import { reached, type Step } from './step-records.js';

/**
 * After which time a task is asked for that has not answered, in case Redis has lost its end; and after how long at most, as the time doubles. Each
 * time costs one more call of the handler.
 */
const ASK_MS = 5_000;
const LONGEST_ASK_MS = 3_600_000;

/** A step that calls a task: definition, payload, options. */
export type CallingStep = readonly [step: Step, item: readonly unknown[]];

interface CalledItem {
  readonly step: Step;
  readonly item: readonly unknown[];
  readonly before: Checkpoint | undefined;
  readonly answer: Answer | undefined;
}

const resultOf = (bytes: Buffer): unknown => (bytes.length === 0 ? undefined : decodeResult(bytes));

/** The tasks that steps call. */
export class StepCalls {
  constructor(private readonly call: HandlerCall) {}

  /** Calls those that were not called yet; returns the results when all have ended. */
  async resultsOf(steps: readonly CallingStep[]): Promise<unknown[]> {
    const { records, work, deps } = this.call;
    const called: CalledItem[] = [];
    for (const [step, item] of steps) {
      await work.inTurn(step);
      const answer = await records.answer(step.name);
      const before = records.find(step, 'call', ({ ended }) => ended !== undefined || answer !== undefined);
      called.push({ step, item, before, answer });
    }
    const waiting = called.filter(({ before, answer }) => !answer && !before?.ended);
    if (waiting.length === 0) return this.ends(called);
    work.requireAttempt();
    let until: number;
    try {
      until = await work.beside(this.enqueue(waiting, deps.clock.now()));
    } catch (error) {
      for (const { step } of waiting) records.keepPlace(step);
      throw error;
    }
    // The last of them is mostly the last to end: to be called again for each of the others would bring nothing.
    const { step } = waiting.at(-1)!;
    return work.suspend(step, until, undefined, { answer: await records.answerName(step.name) });
  }

  private async ends(called: readonly CalledItem[]): Promise<unknown[]> {
    const results: unknown[] = [];
    let failure: StepFailedError | undefined;
    for (const one of called) {
      const end = await this.endOf(one);
      if (end instanceof StepFailedError) failure ??= end;
      else results.push(end.result);
    }
    if (failure) throw failure;
    return results;
  }

  /**
   * Enqueues the tasks that were not enqueued before, and asks for those that have not answered for long, in one call. Returns when to ask
   * again, in milliseconds since the epoch.
   */
  private async enqueue(items: readonly CalledItem[], now: number): Promise<number> {
    const { deps, attempt } = this.call;
    const calls: StepCall[] = [];
    let next = Infinity;
    for (const { step, item, before } of items) {
      const isAsked = before !== undefined && before.until! > now;
      const wait = Math.min(Math.max(ASK_MS, now - (before?.at ?? now)), LONGEST_ASK_MS);
      const until = isAsked ? before.until! : now + wait;
      if (!isAsked) calls.push(await this.callOf(step, item, before, now, until));
      next = Math.min(next, until);
    }
    if (calls.length === 0) return next;
    const caused = await reached(deps.checkpoints.call(attempt.lease, calls));
    if (!caused) throw new LeaseExpiredError();
    deps.relay.carry(caused);
    return next;
  }

  /** What has become of a task that has ended. A failure is stored, so that a later success of the task does not change the past. */
  private async endOf({ step, before, answer }: CalledItem): Promise<StepFailedError | { readonly result: unknown }> {
    const { records, attempt, deps } = this.call;
    const { n, at, queue, id } = before!;
    const ended = deps.clock.now();
    if (before!.failed) {
      // Who runs an archived task by hand may have run the called one again before.
      const isMended = answer?.ok && failedStepOf(attempt.message) === step.name;
      if (!isMended) return failureOf(step, before!, before!.error ?? '');
      await records.write(step, { n, kind: 'call', at, queue, id, ended });
    }
    if (answer!.ok) return { result: resultOf(answer!.result) };
    await records.write(step, { n, kind: 'call', at, queue, id, ended, failed: true, error: answer!.why });
    return failureOf(step, before!, answer!.why);
  }

  private async callOf(
    step: Step,
    [task, payload, options]: readonly unknown[],
    before: Checkpoint | undefined,
    at: number,
    until: number,
  ): Promise<StepCall> {
    const { records, deps, attempt, label } = this.call;
    const answer = await records.answerName(step.name);
    const make = (queue: string, id: string): Checkpoint => ({
      n: step.n,
      kind: 'call',
      at: before?.at ?? at,
      until,
      queue,
      id,
    });
    if (before) {
      const [queue, id] = [before.queue!, before.id!];
      return { step: step.name, answer, queue, id, checkpoint: records.encode(make(queue, id)) };
    }
    if (!deps.calls) throw new InvalidStepError(`${label} cannot call a task: its server has no client`);
    const request = deps.calls.calledBy(attempt.lease.id, answer, task, payload, options);
    const { queue, id } = request.message;
    return { step: step.name, answer, queue, id, request, checkpoint: records.encode(make(queue, id)) };
  }
}

function failureOf({ name }: Step, { queue, id }: Checkpoint, why: string): StepFailedError {
  const task = `task "${id}" of queue "${queue}"`;
  return new StepFailedError(name, `step "${name}" has failed, and so has the ${task} that it called: ${why}`);
}
