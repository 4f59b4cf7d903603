import type { Clock, ClockTimer } from '../../clock.js';
import type { HeldClaims } from './held-claims.js';

/** How many looks per second may find no room: each is some commands. */
const MAX_MISSES_PER_SECOND = 200;
/** What is due is tried again after this time, if nothing says before that there is a slot. */
const RETRY_MS = 50;

/** What is known of the slots of this server. */
export interface Slots {
  /** How many more tasks may run. */
  readonly freeSlots: number;
  /** Whether tasks are pending, or may be, that are still to be claimed. */
  readonly isBehind: boolean;
}

/** Whoever has tasks that wait for a limit, and looks for room though none is known. */
export interface Looker {
  /** Whether what is found needs a slot of this server. */
  readonly needsSlot: boolean;
  /** Returns whether there was room. */
  look(): Promise<boolean>;
}

/** Those that look at the same pace. */
class Line {
  private readonly lookers = new Set<Looker>();
  private allowed = MAX_MISSES_PER_SECOND;
  private countedAt: number;

  constructor(private readonly clock: Clock) {
    this.countedAt = clock.elapsed();
  }

  get isEmpty(): boolean {
    return this.lookers.size === 0;
  }

  add(looker: Looker): void {
    this.lookers.add(looker);
  }

  delete(looker: Looker): void {
    this.lookers.delete(looker);
  }

  /** The first one looks. */
  goOnce(): void {
    let count = 0;
    this.go(() => count++ === 0);
  }

  /** Has them look one after the other, as long as there is room. */
  go(hasRoom: () => boolean): void {
    if (this.isEmpty) return;
    const now = this.clock.elapsed();
    const more = ((now - this.countedAt) * MAX_MISSES_PER_SECOND) / 1000;
    this.allowed = Math.min(MAX_MISSES_PER_SECOND, this.allowed + more);
    this.countedAt = now;
    for (const looker of this.lookers) {
      if (this.allowed < 1 || !hasRoom()) return;
      this.lookers.delete(looker);
      void this.begin(looker);
    }
  }

  private async begin(looker: Looker): Promise<void> {
    this.allowed -= 1;
    if (await looker.look()) this.allowed += 1;
  }
}

/**
 * In which order the limiters of a server look for room: as they are due, and those that need a slot one for each slot that is free, or one at a
 * time when none is. Looks that find nothing are few per second, however many limiters have tasks that wait: with `limitBy` there is one for
 * each key.
 */
export class Looks {
  private readonly forSlots: Line;
  private readonly others: Line;
  /** Slots for which looks are under way. */
  private reserved = 0;
  /** Slots that are not free yet. */
  private ahead = 0;
  private timer: ClockTimer | undefined;
  private closed = false;

  constructor(
    private readonly clock: Clock,
    private readonly slots: Slots,
    private readonly held: Pick<HeldClaims, 'wanted'>,
  ) {
    this.forSlots = new Line(clock);
    this.others = new Line(clock);
  }

  /** Free slots for which no task is wanted or looked for. */
  get room(): number {
    return this.slots.freeSlots - this.held.wanted - this.reserved + this.ahead;
  }

  /** Keeps slots until the look for their tasks is over. */
  async whileReserved<T>(slots: number, look: () => Promise<T>): Promise<T> {
    this.reserved += slots;
    try {
      return await look();
    } finally {
      this.reserved -= slots;
    }
  }

  /** It looks in its turn: now, if none is before it. */
  add(looker: Looker): void {
    if (this.closed) return;
    (looker.needsSlot ? this.forSlots : this.others).add(looker);
    this.go();
  }

  delete(looker: Looker): void {
    this.forSlots.delete(looker);
    this.others.delete(looker);
  }

  /** There may be slots. What is woken is pending: as long as other tasks are, only now and then. */
  go(isRetry = false): void {
    if (this.closed) return;
    this.others.go(() => !this.slots.isBehind);
    if (isRetry) this.others.goOnce();
    this.forSlots.go(() => this.room > 0);
    if (isRetry && this.room <= 0) this.goAhead();
    if (this.forSlots.isEmpty && this.others.isEmpty) return;
    this.timer ??= this.clock.after(RETRY_MS, () => {
      this.timer = undefined;
      this.go(true);
    });
  }

  /** Pending tasks may take each slot for ever: one that waits gets the next. */
  private goAhead(): void {
    if (this.held.wanted + this.reserved > 0) return;
    this.ahead = 1 - this.room;
    this.forSlots.goOnce();
    this.ahead = 0;
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }
}
