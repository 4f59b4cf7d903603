import type { SchedulerEnqueueEvent, SchedulerEntry } from '../../wire/message.js';
import { HISTORY_SECONDS, MAX_ENQUEUE_EVENTS } from '../scheduling.js';

interface Published {
  readonly entries: readonly SchedulerEntry[];
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

interface History {
  /** Oldest first. */
  readonly events: SchedulerEnqueueEvent[];
  expiresAt: number;
}

/** What schedulers publish of their entries. @see SchedulingRole. `now` is milliseconds since the epoch. */
export class SchedulerPublications {
  private readonly schedulers = new Map<string, Published>();
  private readonly histories = new Map<string, History>();

  /** @param ttl seconds */
  publish(schedulerId: string, entries: readonly SchedulerEntry[], ttl: number, now: number): void {
    const copies = entries.map((entry) => ({
      ...entry,
      taskPayload: Buffer.from(entry.taskPayload),
      enqueueOptions: [...entry.enqueueOptions],
    }));
    this.schedulers.set(schedulerId, { entries: copies, expiresAt: now + ttl * 1000 });
  }

  clear(schedulerId: string): void {
    this.schedulers.delete(schedulerId);
  }

  record(entryId: string, event: SchedulerEnqueueEvent, now: number): void {
    const events = [...this.events(entryId, now).slice(-(MAX_ENQUEUE_EVENTS - 1)), { ...event }];
    for (const [id, { expiresAt }] of this.histories) if (expiresAt <= now) this.histories.delete(id);
    this.histories.set(entryId, { events, expiresAt: now + HISTORY_SECONDS * 1000 });
  }

  /** Of all schedulers that have published within their time to live. */
  entries(now: number): SchedulerEntry[] {
    for (const [id, { expiresAt }] of this.schedulers) if (expiresAt <= now) this.schedulers.delete(id);
    return [...this.schedulers.values()].flatMap(({ entries }) => entries);
  }

  /** Oldest first. */
  events(entryId: string, now: number): readonly SchedulerEnqueueEvent[] {
    const history = this.histories.get(entryId);
    return history && history.expiresAt > now ? history.events : [];
  }
}
