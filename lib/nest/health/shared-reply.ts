import type { Clock } from '../../clock.js';

/** Asks once for all that ask at the same time or soon after. */
export class SharedReply<T> {
  private current: Promise<T> | undefined;
  private goodUntil = 0;

  /** @param cacheFor milliseconds for which an answer is good */
  constructor(
    private readonly clock: Pick<Clock, 'elapsed'>,
    private readonly cacheFor: number,
    private readonly ask: () => Promise<T>,
  ) {}

  get(): Promise<T> {
    if (this.current && this.clock.elapsed() < this.goodUntil) return this.current;
    this.goodUntil = Infinity; // all that ask while it is under way share it
    this.current = this.ask().finally(() => (this.goodUntil = this.clock.elapsed() + this.cacheFor));
    return this.current;
  }
}
