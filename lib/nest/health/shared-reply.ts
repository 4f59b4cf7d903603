import type { Clock } from '../../clock.js';

/** One reply for all calls at the same time, and for a while after. */
export class SharedReply<T> {
  private current: Promise<T> | undefined;
  private validUntil = 0;

  /** @param cacheFor milliseconds for which a reply is reused */
  constructor(
    private readonly clock: Pick<Clock, 'elapsed'>,
    private readonly cacheFor: number,
    private readonly ask: () => Promise<T>,
  ) {}

  get(): Promise<T> {
    if (this.current && this.clock.elapsed() < this.validUntil) return this.current;
    this.validUntil = Infinity; // calls during the request share it
    this.current = this.ask().finally(() => (this.validUntil = this.clock.elapsed() + this.cacheFor));
    return this.current;
  }
}
