import { AsyncLocalStorage } from 'node:async_hooks';
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AwaitedEvent, Sleep } from '../../broker/broker.js';
import { ceilSeconds } from '../../clock.js';
import { LeaseExpiredError, ShutdownError, TaskSuspended } from '../../errors.js';
import type { Checkpoint } from './checkpoint.js';
import type { Step, StepRecords } from './step-records.js';
import type { StepsAttempt } from './steps-deps.js';

/** What suspends a handler. */
export type Suspension = Pick<Sleep, 'wakeAt' | 'checkpoint' | 'awaits'> & { readonly step: string };

/**
 * How long a step waits for those that had begun before it when the handler was called before: what a handler does between two steps must not take
 * longer beside others.
 */
const ASKED_WITHIN_MS = 250;

/** It is counted in parts, so that an event loop that was kept busy for long counts as one of them. */
const PART_MS = 25;

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
  /** What is to be stored with the suspension. */
  private unstored: readonly [Step, Checkpoint] | undefined;
  /** Of `running`, those that wait for their turn. */
  private readonly waiting = new Set<(hasCome: boolean) => void>();

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
    this.wake();
  }

  /**
   * The attempt does not end with the suspension, as something beside it has failed: what would be stored with that is stored now. `undefined`:
   * nothing is.
   */
  storeApart(): Promise<void> | undefined {
    const { unstored } = this;
    if (!unstored || this.attempt.isOver) return undefined;
    this.unstored = undefined;
    // The error of the attempt counts, whatever becomes of this.
    return this.records.write(...unstored).catch(() => undefined);
  }

  /**
   * Resolves when it is the turn of the step: behind those that had begun before it when the handler was called before. Steps in a row beside others
   * begin in another order each time.
   *
   * @throws StepsChangedError when these are not asked for
   */
  async inTurn(step: Step): Promise<void> {
    await this.records.load();
    const storing = this.records.storePlaces();
    if (storing) await this.beside(storing);
    if (!this.records.takeTurn(step)) return this.beside(this.waitForTurn(step));
    this.wake();
  }

  private async waitForTurn(step: Step): Promise<void> {
    do {
      if (!(await this.anotherTurn())) return this.records.giveUpTurn(step);
      if (this.sealed) throw new TaskSuspended(step.name);
    } while (!this.records.takeTurn(step));
    this.wake();
  }

  /** Resolves to whether another step had its turn in time; no time passes while a step works. */
  private anotherTurn(): Promise<boolean> {
    return new Promise((resolve) => {
      let parts = 0;
      const expire = (): void => {
        parts = this.isWorking ? 0 : parts + 1;
        if (parts * PART_MS >= ASKED_WITHIN_MS) end(false);
        else timer = begin();
      };
      const begin = () => setTimeout(() => void setImmediate(expire), PART_MS);
      let timer = begin();
      const end = (hasCome: boolean): void => {
        clearTimeout(timer);
        this.waiting.delete(end);
        resolve(hasCome);
      };
      this.waiting.add(end);
    });
  }

  private get isWorking(): boolean {
    return this.running.size > this.waiting.size;
  }

  private wake(): void {
    for (const end of this.waiting) end(true);
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
    if (!beside && checkpoint) this.unstored = [step, checkpoint];
    do {
      // Another step may end the attempt before this one is stored with its settlement.
      if (!isStored && (beside || this.running.size > 0)) {
        isStored = true;
        if (!beside) this.unstored = undefined;
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
