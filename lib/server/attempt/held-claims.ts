import type { ClaimedHeld } from '../../broker/broker.js';

/** Who has room for tasks that wait in a waitlist. */
export interface Claimant {
  readonly scope: string;
  /** An exchange asks for these of the tasks that it wants. */
  claiming(count: HeldCount): void;
  /** What came of those for which it asked; they are about to be admitted. @param reply `undefined`: nothing was claimed, or it is not known */
  arriving(queue: string, count: HeldCount, reply: ClaimedHeld | undefined): void;
  /** They have been admitted. @param reply as before */
  claimed(reply: ClaimedHeld | undefined): void;
}

/** How many tasks. */
export interface HeldCount {
  /** For spare tokens: they begin when they come. */
  readonly now: number;
  /** For tokens that will be spare. */
  readonly ahead: number;
}

/** What one exchange asks for. */
export interface HeldClaim {
  readonly counts: ReadonlyMap<Claimant, HeldCount>;
  /** How many of them need no slot when they come. */
  readonly ahead: number;
}

/** What is wanted of a queue. */
class Wanted {
  readonly counts = new Map<Claimant, HeldCount>();
  now = 0;
  ahead = 0;

  /** @param sign -1: no longer */
  count({ now, ahead }: HeldCount, sign = 1): void {
    this.now += sign * now;
    this.ahead += sign * ahead;
  }
}

/** Which limiters have room for tasks of their waitlists, and in which queue: the next exchange of the queue claims these first. */
export class HeldClaims {
  private readonly byQueue = new Map<string, Wanted>();

  /** @param onChange how many tasks of waitlists of a queue may begin now */
  constructor(private readonly onChange: (queue: string, wanted: number) => void) {}

  /** How many tasks may begin now, in all queues. */
  get wanted(): number {
    let sum = 0;
    for (const { now } of this.byQueue.values()) sum += now;
    return sum;
  }

  want(queue: string, claimant: Claimant, count: HeldCount): void {
    let wanted = this.byQueue.get(queue);
    if (!wanted) this.byQueue.set(queue, (wanted = new Wanted()));
    const before = wanted.counts.get(claimant);
    wanted.counts.set(claimant, {
      now: count.now + (before?.now ?? 0),
      ahead: count.ahead + (before?.ahead ?? 0),
    });
    wanted.count(count);
    this.changed(queue, wanted);
  }

  /** The claimant wants none of them any more. */
  drop(claimant: Claimant): void {
    for (const [queue, wanted] of this.byQueue) {
      const count = wanted.counts.get(claimant);
      if (!count) continue;
      wanted.counts.delete(claimant);
      wanted.count(count, -1);
      this.changed(queue, wanted);
    }
  }

  /** What the next exchange claims. @param slots how many may begin */
  take(queue: string, slots: number): HeldClaim | undefined {
    const wanted = this.byQueue.get(queue);
    if (!wanted) return undefined;
    const counts = new Map<Claimant, HeldCount>();
    let left = slots;
    const { ahead: sum } = wanted;
    for (const [claimant, { now, ahead }] of wanted.counts) {
      if (left <= 0 && wanted.ahead === 0) break;
      const taken = Math.min(now, left);
      if (taken + ahead === 0) continue;
      left -= taken;
      const claim = { now: taken, ahead };
      counts.set(claimant, claim);
      wanted.count(claim, -1);
      if (taken < now) wanted.counts.set(claimant, { now: now - taken, ahead: 0 });
      else wanted.counts.delete(claimant);
      claimant.claiming(claim);
    }
    this.changed(queue, wanted);
    return counts.size > 0 ? { counts, ahead: sum } : undefined;
  }

  private changed(queue: string, wanted: Wanted): void {
    if (wanted.counts.size === 0) this.byQueue.delete(queue);
    this.onChange(queue, wanted.now);
  }
}

export const byWaitlist = ({ counts }: HeldClaim): ReadonlyMap<string, number> =>
  new Map([...counts].map(([{ scope }, { now, ahead }]) => [scope, now + ahead]));
