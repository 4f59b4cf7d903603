/** Seats of a crew: the servers that have one are the first to know of new tasks; the others stand by until they are called. */
export const SEATS = 6;
/** Who has one of the first seats also does what one server does for all: due tasks, expired leases, old tasks. */
export const MAINTAINERS = 2;
/** A seat is free after this time, in milliseconds, unless its server keeps it. */
export const SEAT_MS = 8_000;
/** Standbys are called part by part: each server is in one of them. */
export const CREW_PARTS = 16;
/** In this time, in milliseconds, no part is called twice: a called standby stays awake for longer. */
export const CALL_WINDOW_MS = 10_000;

export interface SeatReply {
  /** From 1; 0: none. */
  readonly seat: number;
  /** Whether somebody has one of the first seats. */
  readonly maintained: boolean;
  /** Whether the crew seems to have servers without a seat. */
  readonly crowded: boolean;
  /** Whether the part of this server was called within the window. */
  readonly called: boolean;
}

/** What standbys hear. `seat`: one is free; `work`: those with a seat are full, and tasks wait. */
export type StandbyCall = 'seat' | 'work';

/**
 * A crew is the servers of the fleet that do the same for the same queues. All of it serves to keep idle servers cheap; whatever
 * is lost here, or refused, only makes a server do more than it must.
 */
export interface SeatsRole {
  /**
   * Takes a seat, keeps the one that this server has, or moves to a free one among the first. Without a free one the crew is noted
   * as crowded. The lease ends by the clock of the store.
   *
   * @param part of this server, from 0 to CREW_PARTS - 1
   */
  take(crew: string, server: string, part: number): Promise<SeatReply>;
  /** Leaves the seat, if this server has one, and tells the standbys. It only looks at what others do, then. */
  leave(crew: string, server: string, part: number): Promise<SeatReply>;
  /**
   * Calls the next parts of the crew, twice as many as before. Returns 0 while there are more to call, then the milliseconds until
   * a new window may begin. Every caller of a crew goes on where another has stopped.
   *
   * @param start the part that is called first, if none was yet
   */
  call(crew: string, start: number): Promise<number>;
  /** Calls the listener from when it has resolved until it is ended. A call may get lost: the next `take` says that it was made. */
  listen(crew: string, part: number, listener: (call: StandbyCall) => void): Promise<() => Promise<void>>;
}

/** Whether `part` is among the `count` parts from `start` on. */
export const isCalled = (part: number, start: number, count: number): boolean =>
  (part - start + CREW_PARTS) % CREW_PARTS < count;
