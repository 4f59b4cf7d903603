import type { ClaimedHeld } from '../../broker/broker.js';
import type { ClockTimer } from '../../clock.js';
import type { Claimant, HeldCount } from './held-claims.js';
import type { LimiterDeps, Waitlist } from './waitlist.js';

/** For so long they are wanted: then no exchange has had a slot for them, and they are woken for all servers. */
const KEPT_MS = 100;

/** The tasks of a waitlist that follow starts of this process that are over: the next exchange claims them, without a call to wake them. */
export class Successors implements Claimant {
  /** Tasks that no exchange has asked for yet. */
  private wanted = 0;
  /** Tasks that are being claimed. */
  private claims = 0;
  /** Tasks that the last exchange was asked for and has not claimed: they wait in another queue, or are gone. */
  private missing = 0;
  private keepTimer: ClockTimer | undefined;

  constructor(
    readonly scope: string,
    private readonly deps: LimiterDeps,
    private readonly waitlist: Waitlist,
  ) {}

  get isUsed(): boolean {
    return this.wanted + this.claims > 0;
  }

  /** Has so many claimed. Returns whether they will be. @param queues where some may wait, unknown here */
  want(count: number, queues: readonly string[]): boolean {
    const { clock, held, listener, broker } = this.deps;
    const queue = listener.takesTasks ? this.waitlist.nextQueue(queues) : undefined;
    if (queue === undefined || broker.fairQueues.has(queue)) return false; // there a task has its turn
    this.wanted += count;
    this.keepTimer ??= clock.after(KEPT_MS, () => this.wakeWanted());
    held.want(queue, this, { now: count, ahead: 0 });
    return true;
  }

  claiming({ now }: HeldCount): void {
    this.wanted -= now;
    this.claims += now;
    if (this.wanted === 0) this.stopTimer();
  }

  arriving(queue: string, { now }: HeldCount, reply: ClaimedHeld | undefined): void {
    this.claims -= now;
    this.missing = now - (reply?.claimed ?? 0);
    if (reply) this.waitlist.learned(queue, reply.left);
    else this.waitlist.pass(queue);
  }

  claimed(): void {
    if (this.missing > 0 && this.waitlist.isUsed) void this.waitlist.wake(this.missing);
    else this.waitlist.lookLater();
  }

  close(): void {
    this.stopTimer();
    this.deps.held.drop(this);
    this.wanted = 0;
  }

  private stopTimer(): void {
    this.keepTimer?.cancel();
    this.keepTimer = undefined;
  }

  private wakeWanted(): void {
    const { wanted } = this;
    this.close();
    void this.waitlist.wake(wanted);
  }
}
