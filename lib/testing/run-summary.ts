import { inspect } from 'node:util';
import type { AsynqEventMap, TaskOutcome, TaskOutcomeKind } from '../events/events.js';

/**
 * A group that was aggregated, or failed to be (`error`; its tasks go back to it two minutes
 * later).
 */
export type Aggregation =
  | (AsynqEventMap['groupAggregated'] & { readonly error?: undefined })
  | (AsynqEventMap['aggregationFailed'] & { readonly task?: undefined });

/** Why tasks that could run did not; `waiting`: for other tasks that have not ended. */
export type LeftReason = 'notServed' | 'paused' | 'noAggregator' | 'limited' | 'newerPayload' | 'waiting';

/** Tasks of one type that could run and did not. */
export interface LeftTasks {
  readonly queue: string;
  readonly type: string;
  readonly count: number;
  readonly reason: LeftReason;
  /** The reason as text, with the remedy. */
  readonly why: string;
}

/** The result of a run: the number of attempts by outcome, and each attempt. */
export class RunSummary implements Readonly<Record<TaskOutcomeKind, number>> {
  /** Succeeded, retained or not. */
  done = 0;
  /** Those of `done` that are retained. */
  completed = 0;
  /** Failed, and will be retried. */
  retry = 0;
  archived = 0;
  revoked = 0;
  /** Threw PostponeTask and will run again. */
  postponed = 0;
  /** Sleeps, or waits for a signal, in a step. */
  suspended = 0;
  requeued = 0;
  lost = 0;
  /** Every attempt, in the order of their ends. Not part of comparisons such as `toEqual`. */
  declare readonly outcomes: readonly TaskOutcome[];

  /** Every group that was due, in the order of aggregation. Not part of comparisons either. */
  declare readonly aggregations: readonly Aggregation[];

  /**
   * Tasks that could run at the end of the run and did not: in queues that this application does
   * not serve or that are paused, in groups that it does not aggregate, and those that wait for
   * other tasks. Not part of comparisons either.
   *
   * @example
   * expect((await tasks.drain()).left).toEqual([]);
   */
  declare readonly left: readonly LeftTasks[];

  constructor() {
    Object.defineProperty(this, 'left', { value: [], enumerable: false });
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

  /** What `console.log` shows: the counts, and what is left with its reasons. */
  [inspect.custom](): object {
    return { ...this, left: this.left };
  }

  addAggregation(aggregation: Aggregation): void {
    (this.aggregations as Aggregation[]).push(aggregation);
  }

  leave(left: readonly LeftTasks[]): void {
    (this.left as LeftTasks[]).push(...left);
  }

  add(outcomes: readonly TaskOutcome[]): void {
    for (const { outcome } of outcomes) {
      this[outcome] += 1;
      if (outcome === 'completed') this.done += 1;
    }
    (this.outcomes as TaskOutcome[]).push(...outcomes);
  }
}
