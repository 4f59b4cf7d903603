import type { Lease } from '../../broker/broker.js';
import type { StepCall } from '../../broker/checkpoints.js';
import { InvalidStepError, LeaseExpiredError, StepFailedError } from '../../errors.js';
import { decodeResult } from '../../task/codec.js';
import type { Answer, Checkpoint } from './checkpoint.js';
import type { Step, StepRecords } from './step-records.js';
import type { StepsDeps } from './steps-deps.js';

/**
 * After which time a task is asked for that has not answered, in case Redis has lost its end; and after how long at most, as the time doubles. Each
 * time costs one more call of the handler.
 */
const ASK_MS = 5_000;
const LONGEST_ASK_MS = 3_600_000;

/** A step that calls a task. */
export interface CalledItem {
  readonly step: Step;
  /** Definition, payload, options. */
  readonly item: readonly unknown[];
  readonly before: Checkpoint | undefined;
  readonly answer: Answer | undefined;
}

const resultOf = (bytes: Buffer): unknown => (bytes.length === 0 ? undefined : decodeResult(bytes));

/** The tasks that steps call. */
export class StepCalls {
  constructor(
    private readonly deps: Pick<StepsDeps, 'checkpoints' | 'relay' | 'calls'>,
    private readonly lease: Lease,
    private readonly records: StepRecords,
    private readonly label: string,
  ) {}

  /**
   * Enqueues the tasks that were not enqueued before, and asks for those that have not answered for long, in one call. Returns when to ask
   * again, in milliseconds since the epoch.
   */
  async call(items: readonly CalledItem[], now: number): Promise<number> {
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
    const caused = await this.deps.checkpoints.call(this.lease, calls);
    if (!caused) throw new LeaseExpiredError();
    this.deps.relay.carry(caused);
    return next;
  }

  /** What has become of a task that has ended. A failure is stored, so that a later success of the task does not change the past. */
  async endOf(
    { step, before, answer }: CalledItem,
    lastError: string,
    now: number,
  ): Promise<StepFailedError | { readonly result: unknown }> {
    const failed = before?.failed && this.failure(step, before, before.error ?? '');
    // Who runs an archived task by hand may have run the called one again before.
    if (failed && !(answer?.ok && lastError.startsWith(failed.message))) return failed;
    if (answer!.ok) return { result: resultOf(answer!.result) };
    const { n, at, queue, id } = before!;
    await this.records.write(step, { n, kind: 'call', at, queue, id, ended: now, failed: true, error: answer!.why });
    return this.failure(step, before!, answer!.why);
  }

  private async callOf(
    step: Step,
    [task, payload, options]: readonly unknown[],
    before: Checkpoint | undefined,
    at: number,
    until: number,
  ): Promise<StepCall> {
    const answer = await this.records.answerName(step.name);
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
      return { step: step.name, answer, queue, id, checkpoint: this.records.encode(make(queue, id)) };
    }
    if (!this.deps.calls) throw new InvalidStepError(`${this.label} cannot call a task: its server has no client`);
    const request = this.deps.calls.calledBy(this.lease.id, answer, task, payload, options);
    const { queue, id } = request.message;
    return { step: step.name, answer, queue, id, request, checkpoint: this.records.encode(make(queue, id)) };
  }

  private failure({ name }: Step, { queue, id }: Checkpoint, why: string): StepFailedError {
    const task = `task "${id}" of queue "${queue}"`;
    return new StepFailedError(name, `step "${name}" has failed, and so has the ${task} that it called: ${why}`);
  }
}
