import type { Caused, LinkNews, LinksRole, Parcel } from '../broker/links.js';
import { ClosedError } from '../errors.js';
import { AsynqEvents } from '../events/events.js';
import { Lanes } from './lanes.js';
import { emitNews } from './news.js';

/** The most parcels of one delivery: bounds the time one script holds Redis. */
const MAX_BATCH_SIZE = 256;
/** Bodies and data of one delivery; a larger parcel goes alone. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;

/**
 * Carries parcels between places: delivers each at its destination, then removes it from the outbox
 * of its origin, and carries what the delivery has caused. One delivery per place is under way. It
 * never throws and has no timers: what fails is left to the keepers of the fleet.
 */
export class Relay {
  private readonly deliveries: Lanes<Parcel>;
  private readonly acknowledgements: Lanes<Parcel>;
  private readonly listeners = new Set<(news: readonly LinkNews[]) => void>();
  private waiters: (() => void)[] = [];
  private closed = false;
  private closing: Promise<void> | undefined;

  constructor(
    private readonly links: Pick<LinksRole, 'deliver' | 'acknowledge' | 'postpone'>,
    private readonly events: AsynqEvents = new AsynqEvents(),
  ) {
    const onIdle = (): void => this.resolveWaiters();
    this.deliveries = new Lanes((place, parcels) => this.deliver(place, parcels), batchSize, onIdle);
    this.acknowledgements = new Lanes((place, parcels) => this.acknowledge(place, parcels), batchSize, onIdle);
  }

  /**
   * Starts at once, then emits the events of what has happened. To be called with the reply to every
   * write that makes or settles links, also when it has caused no parcel: keepers of this process learn
   * from it that there are links.
   */
  carry({ parcels = [], news = [] }: Partial<Caused>): void {
    if (!this.closed) {
      for (const parcel of parcels) this.deliveries.add(parcel.to, identityOf(parcel), parcel);
      this.deliveries.start();
      for (const listener of this.listeners) listener(news);
    }
    for (const one of news) emitNews(this.events, one);
  }

  /** Calls back whenever something is carried, with what has happened. @returns a function that ends it */
  onCarry(listener: (news: readonly LinkNews[]) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** Resolves when nothing is under way, with what deliveries have caused. */
  async idle(): Promise<void> {
    while (!this.isIdle) await new Promise<void>((resolve) => this.waiters.push(resolve));
  }

  /**
   * Resolves when nothing is under way; from then on nothing is carried. Idempotent, never rejects.
   * The caller decides how long to wait.
   */
  close(): Promise<void> {
    this.closing ??= this.idle().then(() => {
      this.closed = true;
    });
    return this.closing;
  }

  private get isIdle(): boolean {
    return this.deliveries.idle && this.acknowledgements.idle;
  }

  private resolveWaiters(): void {
    if (!this.isIdle) return;
    const { waiters } = this;
    this.waiters = [];
    for (const resolve of waiters) resolve();
  }

  private async deliver(place: string, parcels: Parcel[]): Promise<boolean> {
    try {
      const { unknown, ...caused } = await this.links.deliver(place, parcels);
      this.carry(caused);
      const known = unknown ? parcels.filter((parcel) => !unknown.parcels.includes(parcel)) : parcels;
      for (const parcel of known) this.acknowledgements.add(parcel.from, identityOf(parcel), parcel);
      this.acknowledgements.start();
      if (known.length > 0) this.events.emit('parcelsCarried', { place, parcels: known.length });
      if (caused.damage) this.failed(place, known, caused.damage);
      if (unknown) {
        this.failed(place, unknown.parcels, unknown.error);
        for (const parcel of unknown.parcels) await this.links.postpone(parcel.from, [parcel]);
      }
      return true;
    } catch (error) {
      return this.failed(place, parcels, error);
    }
  }

  private async acknowledge(origin: string, parcels: Parcel[]): Promise<boolean> {
    try {
      await this.links.acknowledge(origin, parcels);
      return true;
    } catch (error) {
      return this.failed(origin, parcels, error);
    }
  }

  private failed(place: string, parcels: readonly Parcel[], error: unknown): false {
    if (!(error instanceof ClosedError)) this.events.emit('relayFailed', { place, parcels: parcels.length, error });
    return false;
  }
}

const identityOf = ({ from, key }: Parcel): string => `${from}\n${key}`;

function batchSize(parcels: Iterable<Parcel>): number {
  let count = 0;
  let bytes = 0;
  for (const { body, data } of parcels) {
    bytes += body.length + data.length;
    if (count === MAX_BATCH_SIZE || bytes > MAX_BATCH_BYTES) break;
    count += 1;
  }
  return count;
}
