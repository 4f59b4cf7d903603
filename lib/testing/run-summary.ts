import type { AsynqEventMap, TaskOutcome, TaskOutcomeKind } from '../events/events.js';

/** A group that was made into one task, or could not be (`error`; its tasks go back to it two minutes later). */
export type Aggregation =
  | (AsynqEventMap['groupAggregated'] & { readonly error?: undefined })
  | (AsynqEventMap['aggregationFailed'] & { readonly task?: undefined });

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

  /** Every group that was due, in the order in which they were done. Not part of comparisons either. */
  declare readonly aggregations: readonly Aggregation[];

  constructor() {
    Object.defineProperty(this, 'aggregations', { value: [], enumerable: false });
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

  addAggregation(aggregation: Aggregation): void {
    (this.aggregations as Aggregation[]).push(aggregation);
  }

  add(outcomes: readonly TaskOutcome[]): void {
    for (const outcome of outcomes) this[outcome.outcome] += 1;
    (this.outcomes as TaskOutcome[]).push(...outcomes);
  }
}
