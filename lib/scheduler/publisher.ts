import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Broker } from '../broker/broker.js';
import type { AsynqEvents } from '../events/events.js';
import type { SchedulerEntry } from '../wire/message.js';
import { Job } from './job.js';

/** Milliseconds between two publications, and the seconds readers take them for current. As in asynq. */
const EVERY = 10_000;
const TTL_SECONDS = 20;

/** Milliseconds between two publications when entries change all the time. */
const SOONEST = 1_000;

/** Publishes the entries of this process, so that `asynq cron ls` and asynqmon show them. */
export class Publisher extends Job {
  private readonly schedulerId = `${hostname() || 'unknown-host'}:${process.pid}:${randomUUID()}`;
  private publishedAt = -Infinity;
  private published = false;
  private dirty = false;

  constructor(
    private readonly broker: Broker,
    private readonly events: AsynqEvents,
    private readonly entries: () => SchedulerEntry[],
  ) {
    super();
  }

  /** Something has changed: publish soon. */
  changed(): void {
    this.dirty = true;
    this.dueAt = Math.min(this.dueAt, Math.max(this.now(), this.publishedAt + SOONEST));
  }

  async clear(): Promise<void> {
    if (this.published) await this.broker.clearSchedulerEntries(this.schedulerId);
  }

  protected now(): number {
    return this.broker.clock.now();
  }

  protected onError(error: unknown): void {
    this.events.emit('loopFailed', { loop: 'publication of periodic tasks', error });
  }

  protected async work(): Promise<number> {
    this.publishedAt = this.now();
    this.dirty = false;
    const entries = this.entries();
    if (entries.length > 0 || this.published) {
      this.published = true;
      await this.broker.writeSchedulerEntries(this.schedulerId, entries, TTL_SECONDS);
    }
    return this.publishedAt + (this.dirty ? SOONEST : EVERY); // it may have changed meanwhile
  }
}
