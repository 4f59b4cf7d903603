import { withTimeout } from '../async.js';
import type { Broker } from '../broker/broker.js';
import { BrokerUnavailableError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import { onTaskOccurrences, type TaskEventName } from '../events/task-events.js';
import { encodeOccurrence } from './fleet-event.js';

/** How often events are written: four small calls a second, however many tasks run. */
const WRITE_INTERVAL_MS = 250;
/** How many events wait while Redis is away or slow; newer ones are lost. */
const MAX_WAITING = 10_000;
/** This many events are written at once, before the interval ends. */
const MAX_BATCH_SIZE = 5_000;
/** How long a shutdown waits for the last events to be written. */
const CLOSE_TIMEOUT_MS = 1_000;

export interface EventWriterOptions {
  readonly broker: Pick<Broker, 'events' | 'clock'>;
  readonly events: AsynqEvents;
  readonly names: readonly TaskEventName[];
  /** About how many events the stream keeps. */
  readonly maxLength: number;
  /** `host:pid` */
  readonly process: string;
}

/**
 * Writes this process's events to the stream of the fleet, in batches. No task waits for it, and
 * what cannot be written is lost.
 */
export class EventWriter {
  private waiting: Buffer[] = [];
  private lost = 0;
  private failing = false;
  private scheduled = false;
  private writing: Promise<void> | undefined;
  private readonly end: () => void;

  constructor(private readonly options: EventWriterOptions) {
    this.end = onTaskOccurrences(options.events, options.names, (occurrence) => {
      if (this.waiting.length >= MAX_WAITING) this.lost += 1;
      else this.waiting.push(encodeOccurrence(occurrence, options.process));
      this.schedule();
    });
  }

  /** Accepts no more events, and waits a moment for those that are left. */
  async close(): Promise<void> {
    this.end();
    const last = Promise.resolve(this.writing).then(() => this.write());
    await withTimeout(last, CLOSE_TIMEOUT_MS, this.options.broker.clock);
  }

  private schedule(): void {
    if (this.writing) return;
    if (this.waiting.length >= MAX_BATCH_SIZE) this.flush();
    else if (!this.scheduled) {
      this.scheduled = true;
      this.options.broker.clock.after(WRITE_INTERVAL_MS, () => {
        this.scheduled = false;
        if (!this.writing) this.flush();
      });
    }
  }

  private flush(): void {
    this.writing = this.write().finally(() => {
      this.writing = undefined;
      if (this.waiting.length > 0) this.schedule();
    });
  }

  /** Never rejects. */
  private async write(): Promise<void> {
    const batch = this.waiting;
    this.waiting = [];
    if (batch.length === 0) return;
    try {
      await this.options.broker.events.appendEvents('events', batch, { most: this.options.maxLength });
      if (!this.failing && this.lost > 0) this.reportSlow();
      this.failing = false;
      this.lost = 0;
    } catch (error) {
      this.lost += batch.length;
      if (!this.failing) this.options.events.emit('eventStreamFailed', { error, lost: this.lost });
      this.failing = true;
    }
  }

  /** Redis works, but too slowly for the events that come. */
  private reportSlow(): void {
    const error = new BrokerUnavailableError('appendEvents: Redis takes fewer events than there are');
    this.options.events.emit('eventStreamFailed', { error, lost: this.lost });
  }
}
