import {
  CALL_WINDOW_MS,
  CREW_PARTS,
  isCalled,
  MAINTAINERS,
  SEAT_MS,
  SEATS,
  type SeatReply,
  type SeatsRole,
  type StandbyCall,
} from '../seats.js';
import type { MemoryState } from './memory-state.js';

const CROWDED_MS = 10_000;

interface Listener {
  readonly part: number;
  readonly onCall: (call: StandbyCall) => void;
}

/** Times are milliseconds of the broker's clock. */
class Crew {
  readonly seats: ({ readonly server: string; readonly until: number } | undefined)[] = Array(SEATS).fill(undefined);
  crowdedUntil = 0;
  called = { start: 0, count: 0, until: 0 };
  readonly listeners = new Set<Listener>();

  holder(index: number, now: number): string | undefined {
    const seat = this.seats[index];
    return seat && seat.until > now ? seat.server : undefined;
  }

  describe(seat: number, part: number, now: number): SeatReply {
    const { start, count, until } = this.called;
    return {
      seat,
      maintained: this.seats.some((_, index) => index < MAINTAINERS && this.holder(index, now) !== undefined),
      crowded: this.crowdedUntil > now,
      called: until > now && isCalled(part, start, count),
    };
  }

  /** Standbys hear it after the call that says it. */
  say(call: StandbyCall, hears: (part: number) => boolean): void {
    for (const { part, onCall } of this.listeners) if (hears(part)) queueMicrotask(() => onCall(call));
  }
}

/** Servers of one process that share a broker in memory are a crew like any other. */
export class MemorySeats implements SeatsRole {
  private readonly crews = new Map<string, Crew>();

  constructor(private readonly state: MemoryState) {}

  async take(name: string, server: string, part: number): Promise<SeatReply> {
    const { crew, now } = this.open(name);
    const holders = crew.seats.map((_, index) => crew.holder(index, now));
    const free = holders.indexOf(undefined);
    let own = holders.indexOf(server);
    if (own === -1 || (free !== -1 && free < own && free < MAINTAINERS)) {
      if (own !== -1) crew.seats[own] = undefined;
      own = free;
    }
    if (own === -1) crew.crowdedUntil = now + CROWDED_MS;
    else crew.seats[own] = { server, until: now + SEAT_MS };
    return crew.describe(own + 1, part, now);
  }

  async leave(name: string, server: string, part: number): Promise<SeatReply> {
    const { crew, now } = this.open(name);
    const own = crew.seats.findIndex((_, index) => crew.holder(index, now) === server);
    if (own !== -1) {
      crew.seats[own] = undefined;
      crew.say('seat', () => true);
    }
    return crew.describe(0, part, now);
  }

  async call(name: string, first: number): Promise<number> {
    const { crew, now } = this.open(name);
    if (crew.called.until <= now) crew.called = { start: first, count: 0, until: now + CALL_WINDOW_MS };
    const { start, count: done, until } = crew.called;
    const count = Math.min(CREW_PARTS, Math.max(1, 2 * done));
    crew.called = { start, count, until };
    crew.say('work', (part) => isCalled(part, start, count) && !isCalled(part, start, done));
    return count < CREW_PARTS ? 0 : until - now;
  }

  async listen(name: string, part: number, listener: (call: StandbyCall) => void): Promise<() => Promise<void>> {
    const { crew } = this.open(name);
    const own: Listener = { part, onCall: listener };
    crew.listeners.add(own);
    return async () => void crew.listeners.delete(own);
  }

  /** Forgets who sits where. */
  clear(): void {
    for (const crew of this.crews.values()) {
      crew.seats.fill(undefined);
      crew.crowdedUntil = 0;
      crew.called = { start: 0, count: 0, until: 0 };
    }
  }

  private open(name: string): { crew: Crew; now: number } {
    this.state.assertOpen();
    let crew = this.crews.get(name);
    if (!crew) this.crews.set(name, (crew = new Crew()));
    return { crew, now: this.state.clock.elapsed() };
  }
}
