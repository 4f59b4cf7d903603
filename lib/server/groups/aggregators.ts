import type { EnqueueRequest } from '../../broker/broker.js';
import { InvalidHandlerError } from '../../errors.js';
import type { TaskMessage } from '../../wire/message.js';

/** A task of a group, as the function that aggregates it sees it. */
export interface GroupedTask<P = unknown> {
  readonly id: string;
  readonly type: string;
  readonly payload: P;
  /** Empty when the task has none. */
  readonly headers: Readonly<Record<string, string>>;
}

/** One aggregating function as the server sees it. */
export interface TaskAggregatorEntry {
  /** A prefix of group names; empty = every group. The longest that fits wins. */
  readonly pattern: string;
  /** What the function is given of a message. What it throws has that task archived. */
  readonly read: (message: TaskMessage) => GroupedTask;
  /** The task to create, of the queue named. */
  readonly aggregate: (queue: string, group: string, tasks: readonly GroupedTask[]) => Promise<EnqueueRequest>;
}

/** Finds the aggregating function of a group. */
export class Aggregators {
  private readonly byLength: readonly TaskAggregatorEntry[];

  /** @throws InvalidHandlerError for two of one pattern */
  constructor(entries: Iterable<TaskAggregatorEntry>) {
    this.byLength = [...entries].sort((a, b) => b.pattern.length - a.pattern.length);
    const patterns = new Set<string>();
    for (const { pattern } of this.byLength) {
      if (patterns.has(pattern)) throw new InvalidHandlerError(`asynq: multiple aggregators for groups "${pattern}*"`);
      patterns.add(pattern);
    }
  }

  get size(): number {
    return this.byLength.length;
  }

  /** Whether no group is left without one. */
  get coverAll(): boolean {
    return this.byLength.at(-1)?.pattern === '';
  }

  find(group: string): TaskAggregatorEntry | undefined {
    return this.byLength.find(({ pattern }) => group.startsWith(pattern));
  }
}
