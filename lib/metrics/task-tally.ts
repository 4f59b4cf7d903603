import type { FinishedStep, StepOutcomeKind, TaskOutcome, TaskOutcomeKind, TaskRef } from '../events/events.js';
import { Buckets } from './buckets.js';
import type { Sample } from './sample.js';

/** The outcomes of attempts in the metrics. */
export const OUTCOMES = [
  'succeeded',
  'retried',
  'archived',
  'revoked',
  'postponed',
  'suspended',
  'requeued',
  'lost',
] as const;

/** The outcomes of steps in the metrics. */
const STEP_OUTCOMES: readonly StepOutcomeKind[] = ['done', 'failed', 'interrupted'];

const COUNTED_AS: Readonly<Record<TaskOutcomeKind, number>> = {
  done: 0,
  completed: 0,
  retry: 1,
  archived: 2,
  revoked: 3,
  postponed: 4,
  suspended: 5,
  requeued: 6,
  lost: 7,
};
/**
 * From this outcome on the duration says nothing about such tasks: the handler was interrupted, or
 * never called.
 */
const INTERRUPTED = 6;

/**
 * The label of types without a handler: others may enqueue any type, and each would be a new
 * series.
 */
const UNKNOWN_TYPE = 'unknown';

export interface TaskTallyOptions {
  /** Upper bounds in seconds, ascending. */
  readonly durationBuckets: readonly number[];
  readonly waitBuckets: readonly number[];
  /** The pattern of the handler for a type. */
  readonly patternOf: (type: string) => string | undefined;
}

interface Series {
  readonly labels: { readonly queue: string; readonly type: string };
  readonly outcomes: Float64Array;
  readonly duration: Buckets;
  readonly wait: Buckets;
  stuck: number;
  /** Made with its first step. */
  steps: { readonly outcomes: Float64Array; readonly duration: Buckets } | undefined;
}

/**
 * Counts attempts by queue and handler. It is on the hot path: a few look-ups per task, and no
 * allocation.
 */
export class TaskTally {
  private readonly queues = new Map<string, Map<string, Series>>();

  constructor(private readonly options: TaskTallyOptions) {}

  record({ task, outcome, duration, waited }: TaskOutcome): void {
    const series = this.seriesOf(task.queue, task.type);
    const counted = COUNTED_AS[outcome];
    series.outcomes[counted]! += 1;
    if (counted < INTERRUPTED) series.duration.observe(duration / 1000);
    if (waited !== undefined) series.wait.observe(waited / 1000);
  }

  /** Names of steps are no labels: a loop, or the payload, may make any number of them. */
  recordStep({ queue, type }: TaskRef, { outcome, duration }: Pick<FinishedStep, 'outcome' | 'duration'>): void {
    const steps = (this.seriesOf(queue, type).steps ??= {
      outcomes: new Float64Array(STEP_OUTCOMES.length),
      duration: new Buckets(this.options.durationBuckets),
    });
    steps.outcomes[STEP_OUTCOMES.indexOf(outcome)]! += 1;
    if (outcome !== 'interrupted') steps.duration.observe(duration / 1000);
  }

  recordStuck({ queue, type }: TaskRef): void {
    this.seriesOf(queue, type).stuck += 1;
  }

  /**
   * Includes zeroes: Prometheus's `increase` ignores a series that begins with 1, such as the first
   * lost lease of a process.
   */
  *attempts(): Iterable<Sample> {
    for (const { labels, outcomes } of this.all()) {
      for (const [index, outcome] of OUTCOMES.entries())
        yield { labels: { ...labels, outcome }, value: outcomes[index]! };
    }
  }

  /** Includes zeroes, too. */
  *stuck(): Iterable<Sample> {
    for (const { labels, stuck: value } of this.all()) yield { labels, value };
  }

  *durations(name: string): Iterable<Sample> {
    for (const { labels, duration } of this.all()) yield* duration.samples(name, labels);
  }

  *waits(name: string): Iterable<Sample> {
    for (const { labels, wait } of this.all()) yield* wait.samples(name, labels);
  }

  *steps(): Iterable<Sample> {
    for (const { labels, steps } of this.all()) {
      if (!steps) continue;
      for (const [index, outcome] of STEP_OUTCOMES.entries())
        yield { labels: { ...labels, outcome }, value: steps.outcomes[index]! };
    }
  }

  *stepDurations(name: string): Iterable<Sample> {
    for (const { labels, steps } of this.all()) if (steps) yield* steps.duration.samples(name, labels);
  }

  private seriesOf(queue: string, type: string): Series {
    const label = this.options.patternOf(type) ?? UNKNOWN_TYPE;
    let types = this.queues.get(queue);
    if (!types) this.queues.set(queue, (types = new Map()));
    let series = types.get(label);
    if (!series) types.set(label, (series = this.create(queue, label)));
    return series;
  }

  private create(queue: string, type: string): Series {
    const { durationBuckets, waitBuckets } = this.options;
    return {
      labels: { queue, type },
      outcomes: new Float64Array(OUTCOMES.length),
      duration: new Buckets(durationBuckets),
      wait: new Buckets(waitBuckets),
      stuck: 0,
      steps: undefined,
    };
  }

  private *all(): Iterable<Series> {
    for (const types of this.queues.values()) yield* types.values();
  }
}
