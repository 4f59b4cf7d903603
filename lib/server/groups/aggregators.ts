import type { PreparedTask } from '../../enqueue/prepared-task.js';
import { InvalidHandlerError } from '../../errors.js';
import type { TaskMessage } from '../../wire/message.js';

/** A task of a group, as the aggregator sees it. */
export interface GroupedTask<P = unknown> {
  readonly id: string;
  readonly type: string;
  readonly payload: P;
  /** Empty when the task has none. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A function that makes one task of the tasks of a group. */
export interface TaskAggregatorEntry {
  /** A prefix of group names; empty: every group. The longest that fits wins. */
  readonly pattern: string;
  /** Decodes a task. One for which it throws is archived. */
  readonly read: (message: TaskMessage) => GroupedTask;
  /** Returns the task to create. */
  readonly aggregate: (queue: string, group: string, tasks: readonly GroupedTask[]) => Promise<PreparedTask>;
}

/** Finds the aggregator of a group. */
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

  get patterns(): string[] {
    return this.byLength.map(({ pattern }) => pattern);
  }

  /** Whether every group has one. */
  get coverAll(): boolean {
    return this.byLength.at(-1)?.pattern === '';
  }

  find(group: string): TaskAggregatorEntry | undefined {
    return this.byLength.find(({ pattern }) => group.startsWith(pattern));
  }
}
