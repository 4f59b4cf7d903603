import type { TaskOutcome, TaskOutcomeKind } from '../events/events.js';
import { Buckets } from './buckets.js';
import type { Sample } from './sample.js';

/** What attempts are counted as. */
export const OUTCOMES = ['succeeded', 'retried', 'archived', 'revoked', 'postponed', 'requeued', 'lost'] as const;

const COUNTED_AS: Readonly<Record<TaskOutcomeKind, number>> = {
  done: 0,
  completed: 0,
  retry: 1,
  archived: 2,
  revoked: 3,
  postponed: 4,
  requeued: 5,
  lost: 6,
};
/** From here on what the handler did says nothing about how long such tasks take: it was interrupted, or never called. */
const INTERRUPTED = 5;

/** The label of types no handler is for: what others enqueue must not make new series without end. */
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
}

/** Counts attempts by queue and handler. It stands on the hot path: a few look-ups per task, and nothing is allocated. */
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

  *attempts(): Iterable<Sample> {
    for (const { labels, outcomes } of this.all()) {
      for (const [index, outcome] of OUTCOMES.entries()) {
        const value = outcomes[index]!;
        if (value > 0) yield { labels: { ...labels, outcome }, value };
      }
    }
  }

  *durations(name: string): Iterable<Sample> {
    for (const { labels, duration } of this.all()) yield* duration.samples(name, labels);
  }

  *waits(name: string): Iterable<Sample> {
    for (const { labels, wait } of this.all()) yield* wait.samples(name, labels);
  }

  /** The label for a type of task. */
  typeLabel(type: string): string {
    return this.options.patternOf(type) ?? UNKNOWN_TYPE;
  }

  private seriesOf(queue: string, type: string): Series {
    const label = this.typeLabel(type);
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
    };
  }

  private *all(): Iterable<Series> {
    for (const types of this.queues.values()) yield* types.values();
  }
}
