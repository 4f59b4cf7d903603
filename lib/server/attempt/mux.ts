import { InvalidHandlerError } from '../../errors.js';
import { isBlank, nearest } from '../../validation.js';
import type { TaskHandlerEntry } from './handler.js';

/** Types are few, unless an application puts ids into them. */
const MAX_CACHED_LOOKUPS = 1_000;

/**
 * Finds the handler of a task type: an exact pattern first, else the longest pattern that is a
 * prefix (asynq's ServeMux).
 */
export class Mux {
  /** Whether a handler says that it has steps. */
  readonly hasSteps: boolean;
  private readonly exact = new Map<string, TaskHandlerEntry>();
  private readonly byLength: TaskHandlerEntry[];
  private readonly nearby = new Map<string, string | undefined>();
  private readonly lookups = new Map<string, TaskHandlerEntry | undefined>();

  /** @throws InvalidHandlerError for a blank pattern or two handlers of one pattern */
  constructor(entries: Iterable<TaskHandlerEntry>) {
    for (const entry of entries) {
      if (isBlank(entry.pattern))
        throw new InvalidHandlerError('asynq: invalid pattern: a task type must not be blank');
      if (this.exact.has(entry.pattern)) {
        throw new InvalidHandlerError(`asynq: multiple registrations for ${entry.pattern}`);
      }
      this.exact.set(entry.pattern, entry);
    }
    this.hasSteps = [...this.exact.values()].some(({ steps }) => steps !== undefined);
    this.byLength = [...this.exact.values()].sort((a, b) => b.pattern.length - a.pattern.length);
  }

  get size(): number {
    return this.exact.size;
  }

  entries(): Iterable<TaskHandlerEntry> {
    return this.exact.values();
  }

  find(type: string): TaskHandlerEntry | undefined {
    const exact = this.exact.get(type);
    if (exact || this.lookups.has(type)) return exact ?? this.lookups.get(type);
    const entry = this.byLength.find(({ pattern }) => type.startsWith(pattern));
    if (this.lookups.size >= MAX_CACHED_LOOKUPS) this.lookups.clear();
    this.lookups.set(type, entry);
    return entry;
  }

  /** The pattern that a type without a handler most likely means. */
  nearest(type: string): string | undefined {
    if (!this.nearby.has(type)) {
      if (this.nearby.size >= MAX_CACHED_LOOKUPS) this.nearby.clear();
      this.nearby.set(type, nearest(type, this.exact.keys()));
    }
    return this.nearby.get(type);
  }
}
