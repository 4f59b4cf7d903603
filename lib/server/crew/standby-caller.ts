import { CREW_PARTS, type SeatsRole } from '../../broker/seats.js';
import type { Clock, ClockTimer } from '../../clock.js';
import type { AsynqEvents } from '../../events/events.js';

/** Between two calls of one window: who was called may have taken what waited. */
const STEP_MS = 20;
const FAILED_PAUSE_MS = 1_000;

export interface StandbyCallerOptions {
  readonly broker: { readonly seats: SeatsRole };
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly seat: { readonly isCrowded: boolean; readonly crew: string };
}

/** What a server knows about tasks that wait for others than itself. */
export interface Overload {
  /** Whether tasks wait that this server has no slot for. */
  readonly isOverloaded: boolean;
  /** Reads it anew. */
  lookAgain(): Promise<void>;
}

/**
 * Calls standbys while tasks wait and this server is full: one part of the crew, then twice as many every few milliseconds. When
 * all were called it rests for a window, in which they are awake.
 */
export class StandbyCaller {
  private timer: ClockTimer | undefined;
  private busy = false;
  private closed = false;

  constructor(private readonly options: StandbyCallerOptions) {}

  /** To be called when there may be an overload. */
  check(overload: Overload): void {
    if (this.busy || this.closed || !this.options.seat.isCrowded || !overload.isOverloaded) return;
    this.busy = true;
    void this.call(overload);
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  private async call(overload: Overload): Promise<void> {
    const { broker, events, seat } = this.options;
    let pause = FAILED_PAUSE_MS;
    try {
      pause = Math.max(STEP_MS, await broker.seats.call(seat.crew, Math.floor(Math.random() * CREW_PARTS)));
    } catch (error) {
      events.emit('loopFailed', { loop: 'standby caller', error });
    }
    this.after(pause, () => void this.goOn(overload));
  }

  private async goOn(overload: Overload): Promise<void> {
    try {
      await overload.lookAgain();
    } catch (error) {
      this.options.events.emit('loopFailed', { loop: 'standby caller', error });
      return this.after(FAILED_PAUSE_MS, () => void this.goOn(overload));
    }
    this.busy = false;
    this.check(overload);
  }

  private after(milliseconds: number, then: () => void): void {
    if (!this.closed) this.timer = this.options.clock.after(milliseconds, then);
  }
}
