import type { TaskOutcome, TaskOutcomeKind } from '../events/events.js';

/** What a run came to: the number of attempts by outcome, and each of them. */
export class RunSummary implements Readonly<Record<TaskOutcomeKind, number>> {
  /** Succeeded and were deleted. */
  done = 0;
  /** Succeeded and are retained. */
  completed = 0;
  /** Failed and will be tried again. */
  retry = 0;
  archived = 0;
  revoked = 0;
  /** Threw PostponeTask and will run again. */
  postponed = 0;
  requeued = 0;
  lost = 0;
  /** Every attempt, in the order in which they ended. Not part of comparisons such as `toEqual`. */
  declare readonly outcomes: readonly TaskOutcome[];

  constructor() {
    Object.defineProperty(this, 'outcomes', { value: [], enumerable: false });
  }

  /** All attempts. */
  get total(): number {
    return this.outcomes.length;
  }

  /** What the failed attempts threw, in the order in which they ended. */
  get errors(): unknown[] {
    return this.outcomes.flatMap(({ error }) => (error === undefined ? [] : [error]));
  }

  add(outcomes: readonly TaskOutcome[]): void {
    for (const outcome of outcomes) this[outcome.outcome] += 1;
    (this.outcomes as TaskOutcome[]).push(...outcomes);
  }
}
