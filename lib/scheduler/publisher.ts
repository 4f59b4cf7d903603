import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { mapInTurns } from '../async.js';
import type { Broker } from '../broker/broker.js';
import type { AsynqEvents } from '../events/events.js';
import { Loop, type NextDelay } from '../loop.js';
import type { SchedulerEntry } from '../wire/message.js';

/** How often the entries are published, and how long readers take them for current. As in asynq. */
const PUBLISH_INTERVAL_MS = 10_000;
const PUBLISHED_TTL_SECONDS = 20;

/** The shortest time between two publications, when entries change all the time; more for more entries. */
const MIN_PUBLISH_INTERVAL_MS = 1_000;
const MIN_INTERVAL_PER_ENTRY_MS = 0.5;

/** An entry; `published` returns what asynq's tools read. */
interface PublishedEntry {
  published(): SchedulerEntry;
}

/** Publishes the entries of this process, so that `asynq cron ls` and asynqmon show them. */
export class Publisher {
  readonly loop: Loop;
  private readonly schedulerId = `${hostname() || 'unknown-host'}:${process.pid}:${randomUUID()}`;
  private publishedAt = -Infinity;
  private published = false;
  private changedSince = false;
  private shortest = MIN_PUBLISH_INTERVAL_MS;

  constructor(
    private readonly broker: Broker,
    events: AsynqEvents,
    private readonly entries: () => readonly PublishedEntry[],
  ) {
    this.loop = new Loop({
      name: 'publication of periodic tasks',
      clock: broker.clock,
      byTimeOfDay: true,
      runOnce: () => this.runOnce(),
      onError: (loop, error) => events.emit('loopFailed', { loop, error }),
    });
  }

  /** Publishes soon. */
  changed(): void {
    this.changedSince = true;
    this.loop.runWithin(Math.max(0, this.publishedAt + this.shortest - this.broker.clock.now()));
  }

  async clear(): Promise<void> {
    if (this.published) await this.broker.scheduling.clearSchedulerEntries(this.schedulerId);
  }

  private async runOnce(): Promise<NextDelay> {
    this.publishedAt = this.broker.clock.now();
    this.changedSince = false;
    const found = this.entries();
    this.shortest = Math.max(MIN_PUBLISH_INTERVAL_MS, found.length * MIN_INTERVAL_PER_ENTRY_MS);
    const entries = await mapInTurns(found, (entry) => entry.published());
    if (entries.length > 0 || this.published) {
      this.published = true;
      await this.broker.scheduling.writeSchedulerEntries(this.schedulerId, entries, PUBLISHED_TTL_SECONDS);
    }
    return this.changedSince ? this.shortest : PUBLISH_INTERVAL_MS;
  }
}
