import type { BatchState } from '../../../task/batch.js';
import type { BatchCallback, BatchProgress, NewBatch } from '../../batches.js';

const OPEN = 1;
const SUCCEEDED = 2;
const DEAD = 3;

/** What a batch has in one queue: its members by number. */
export class Part {
  made = 0;
  succeeded = 0;
  dead = 0;
  /** How far the keeper has looked for members that ended unseen. */
  cursor = 0;
  private states = new Uint8Array(64);

  has(number: number): boolean {
    return (this.states[number] ?? 0) !== 0;
  }

  add(number: number): void {
    if (number >= this.states.length) {
      const larger = new Uint8Array(Math.max(number + 1, this.states.length * 2));
      larger.set(this.states);
      this.states = larger;
    }
    this.states[number] = OPEN;
    this.made++;
  }

  /** A member has ended. One that has succeeded stays so. */
  settle(number: number, ok: boolean): void {
    const state = this.states[number] ?? 0;
    if (state === 0 || state === SUCCEEDED || (state === DEAD && !ok)) return;
    this.states[number] = ok ? SUCCEEDED : DEAD;
    if (state === DEAD) this.dead--;
    if (ok) this.succeeded++;
    else this.dead++;
  }

  /** The next members that have not ended, at most that many, from where the last call stopped. */
  open(limit: number): number[] {
    const found: number[] = [];
    if (this.made === this.succeeded + this.dead) return found;
    while (this.cursor < this.states.length && found.length < limit) {
      if (this.states[this.cursor] === OPEN) found.push(this.cursor);
      this.cursor++;
    }
    if (this.cursor >= this.states.length) this.cursor = 0;
    return found;
  }
}

/** A batch in memory. */
export class StoredBatch {
  readonly parts = new Map<string, Part>();
  /** Chunks that nobody has confirmed, by the number of the first. */
  readonly unconfirmed = new Map<number, { readonly queue: string; readonly count: number }>();
  /** Chunks that were given up. */
  readonly given = new Set<number>();
  readonly called = new Set<BatchCallback>();
  state: BatchState = 'open';
  endedAt: number | undefined;
  died = false;
  private next = 0;

  constructor(
    readonly home: string,
    readonly batch: NewBatch,
    /** Milliseconds since the epoch. */
    readonly openedAt: number,
  ) {}

  get hasEnded(): boolean {
    return this.state === 'succeeded' || this.state === 'completed';
  }

  /** Numbers for a chunk, from the start of a byte of the bitmaps of Redis if they fill one. */
  reserve(queue: string, count: number): number {
    const whole = count >= 8;
    const base = whole ? Math.ceil(this.next / 8) * 8 : this.next;
    this.next = whole ? Math.ceil((base + count) / 8) * 8 : base + count;
    this.unconfirmed.set(base, { queue, count });
    return base;
  }

  part(queue: string): Part {
    let part = this.parts.get(queue);
    if (!part) this.parts.set(queue, (part = new Part()));
    return part;
  }

  progress(): BatchProgress {
    const sum = (read: (part: Part) => number): number =>
      [...this.parts.values()].reduce((n, part) => n + read(part), 0);
    const [total, succeeded, failed] = [
      sum(({ made }) => made),
      sum((part) => part.succeeded),
      sum(({ dead }) => dead),
    ];
    const failedIn = [...this.parts].flatMap(([queue, { dead }]) => (dead > 0 ? [queue] : [])).sort();
    const { home, state, openedAt, endedAt } = this;
    const { id, name } = this.batch;
    const pending = total - succeeded - failed;
    return { home, id, name, state, total, pending, succeeded, failed, failedIn, openedAt, endedAt };
  }
}
