import { setImmediate } from 'node:timers'; // the real one, also where a test fakes the global

/** Passes that begin in one turn of the event loop: some milliseconds of work. */
const PASSES_PER_TURN = 25;

/**
 * Spreads passes that are due at once over turns of the event loop. A pass that is alone begins at
 * once.
 */
export class Turns {
  private begun = 0;
  private readonly waiting: (() => void)[] = [];

  /** `undefined`: the pass may begin; else it waits for its turn. */
  take(): Promise<void> | undefined {
    if (this.begun === PASSES_PER_TURN) return new Promise((resolve) => this.waiting.push(resolve));
    if (this.begun++ === 0) setImmediate(() => this.next());
    return undefined;
  }

  private next(): void {
    const next = this.waiting.splice(0, PASSES_PER_TURN);
    this.begun = next.length;
    if (this.begun > 0) setImmediate(() => this.next());
    for (const begin of next) begin();
  }
}
