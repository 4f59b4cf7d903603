import type { Broker } from '../broker/broker.js';
import type { ClockTimer } from '../clock.js';
import { decodeOccurrence, type FleetOccurrence } from './fleet-event.js';

/** Entries read in one call. */
const PAGE_SIZE = 500;

export interface EventReaderOptions {
  readonly broker: Pick<Broker, 'events' | 'clock'>;
  /** Where to begin: after this id; `undefined`: now. */
  readonly from: string | undefined;
  /** Milliseconds between two polls. */
  readonly interval: number;
  readonly onEvent: (occurrence: FleetOccurrence) => void;
  /** The stream cannot be read; called once until it can be read again. */
  readonly onFailure: (error: unknown) => void;
}

/** Polls the stream of the fleet. While Redis is away it retries, and then goes on where it was. */
export class EventReader {
  private position: string | undefined;
  private timer: ClockTimer | undefined;
  private ended = false;
  private failing = false;

  constructor(private readonly options: EventReaderOptions) {
    this.position = options.from;
    void this.poll();
  }

  end(): void {
    this.ended = true;
    this.timer?.cancel();
  }

  private async poll(): Promise<void> {
    const { broker, interval } = this.options;
    try {
      this.position ??= await broker.events.lastEventId('events');
      while (!this.ended && (await this.readPage()));
      this.failing = false;
    } catch (error) {
      if (!this.failing && !this.ended) this.options.onFailure(error);
      this.failing = true;
    }
    if (!this.ended) this.timer = broker.clock.after(interval, () => void this.poll());
  }

  /** Returns whether there may be more. */
  private async readPage(): Promise<boolean> {
    const entries = await this.options.broker.events.readEvents('events', this.position!, PAGE_SIZE);
    for (const entry of entries) {
      if (this.ended) return false;
      this.position = entry.id;
      const occurrence = decodeOccurrence(entry);
      if (occurrence) this.options.onEvent(occurrence);
    }
    return entries.length === PAGE_SIZE;
  }
}
