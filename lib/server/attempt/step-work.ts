import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AwaitedEvent, Sleep } from '../../broker/broker.js';
import { ceilSeconds } from '../../clock.js';
import { LeaseExpiredError, ShutdownError, TaskSuspended } from '../../errors.js';
import type { Checkpoint } from './checkpoint.js';
import type { Step, StepRecords } from './step-records.js';
import type { StepsAttempt } from './steps-deps.js';

/** What suspends a handler. */
export type Suspension = Pick<Sleep, 'wakeAt' | 'checkpoint' | 'awaits'> & { readonly step: string };

/** The step around a call, in which there may be no other. */
const surrounding = new AsyncLocalStorage<string>();

export const surroundingStep = (): string | undefined => surrounding.getStore();

export const withinStep = <T>(name: string, work: () => Promise<T>): Promise<T> => surrounding.run(name, work);

/** The work of steps that is under way in one call of a handler, and what suspends the handler: not before this work has ended. */
export class StepWork {
  suspension: Suspension | undefined;
  /** Whether the handler has gone on after a step had thrown what suspends it; known once it has ended. */
  swallows = false;
  private readonly running = new Set<Promise<unknown>>();
  private sealed = false;
  /** A step has thrown what suspends the handler. */
  private hasThrown = false;
  private hasEnded = false;

  constructor(
    private readonly attempt: StepsAttempt,
    private readonly records: StepRecords,
  ) {}

  /** The handler has ended, or nothing goes on beside what suspends it: no step begins any more. */
  get isSealed(): boolean {
    return this.sealed;
  }

  get isBusy(): boolean {
    return this.running.size > 0;
  }

  /** The handler has returned or thrown. Steps that it has begun side by side may still run: see `quiet`. */
  ended(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.sealed = true;
    this.swallows = this.hasThrown;
  }

  /** Resolves when no step runs. */
  async quiet(): Promise<void> {
    while (this.running.size > 0) await Promise.allSettled(this.running);
  }

  /** What a step does after its attempt is over, another attempt does, too. @throws what has ended the attempt */
  requireAttempt(): void {
    const { aborted, isOver } = this.attempt;
    if (isOver) throw aborted ?? new LeaseExpiredError();
    if (aborted && !(aborted instanceof ShutdownError)) throw aborted;
  }

  /** Work that a suspension waits for. */
  async beside<T>(running: Promise<T>): Promise<T> {
    this.running.add(running);
    try {
      return await running;
    } finally {
      this.running.delete(running);
    }
  }

  /** Steps beside this one end first: what they do would not be stored. */
  async suspend(step: Step, until: number, checkpoint?: Checkpoint, awaited?: AwaitedEvent): Promise<never> {
    const { name } = step;
    const beside = this.suspension;
    this.suspension = {
      step: beside?.step ?? name,
      wakeAt: Math.min(beside?.wakeAt ?? Infinity, ceilSeconds(until)),
      checkpoint: beside ? beside.checkpoint : checkpoint && { name, bytes: this.records.encode(checkpoint) },
      awaits: [...(beside?.awaits ?? []), ...(awaited ? [awaited] : [])],
    };
    let isStored = checkpoint === undefined;
    do {
      // Another step may end the attempt before this one is stored with its settlement.
      if (!isStored && (beside || this.running.size > 0)) {
        isStored = true;
        await this.records.write(step, checkpoint!);
      }
      await this.quiet();
      await nextTurn(); // what these have brought may begin the next step
    } while (this.running.size > 0);
    this.sealed = true;
    this.hasThrown = true;
    throw new TaskSuspended(name);
  }
}
