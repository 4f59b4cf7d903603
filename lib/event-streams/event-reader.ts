import type { Broker } from '../broker/broker.js';
import type { ClockTimer } from '../clock.js';
import { decodeOccurrence, type FleetOccurrence } from './fleet-event.js';

/** Entries read in one call. */
const PAGE = 500;

export interface EventReaderOptions {
  readonly broker: Pick<Broker, 'events' | 'clock'>;
  /** Read what comes after this id; `undefined`: from now on. */
  readonly from: string | undefined;
  /** Milliseconds between two looks. */
  readonly interval: number;
  readonly onEvent: (occurrence: FleetOccurrence) => void;
  /** The stream cannot be read; told once until it can be. */
  readonly onFailure: (error: unknown) => void;
}

/** Follows the stream of the fleet. While Redis is away it goes on trying, and reads on where it was. */
export class EventReader {
  private place: string | undefined;
  private timer: ClockTimer | undefined;
  private ended = false;
  private failing = false;

  constructor(private readonly options: EventReaderOptions) {
    this.place = options.from;
    void this.look();
  }

  end(): void {
    this.ended = true;
    this.timer?.cancel();
  }

  private async look(): Promise<void> {
    const { broker, interval } = this.options;
    try {
      this.place ??= await broker.events.lastEventId('events');
      while (!this.ended && (await this.readPage()));
      this.failing = false;
    } catch (error) {
      if (!this.failing && !this.ended) this.options.onFailure(error);
      this.failing = true;
    }
    if (!this.ended) this.timer = broker.clock.after(interval, () => void this.look());
  }

  /** Answers whether there may be more. */
  private async readPage(): Promise<boolean> {
    const entries = await this.options.broker.events.readEvents('events', this.place!, PAGE);
    for (const entry of entries) {
      if (this.ended) return false;
      this.place = entry.id;
      const occurrence = decodeOccurrence(entry);
      if (occurrence) this.options.onEvent(occurrence);
    }
    return entries.length === PAGE;
  }
}
