import { randomUUID } from 'node:crypto';
import {
  CREW_PARTS,
  MAINTAINERS,
  SEAT_MS,
  type SeatReply,
  type SeatsRole,
  type StandbyCall,
} from '../../broker/seats.js';
import type { Clock } from '../../clock.js';
import { BrokerUnavailableError } from '../../errors.js';

/** Between two passes of a server with a seat, and of one without, on average. */
const KEEP_INTERVAL_MS = 2_500;
const TRY_INTERVAL_MS = 3_000;
/** How long a standby that was called, or has just become one, acts as one with a seat: longer than a window of calls. */
const AWAKE_MS = 15_000;
/** How long a crew that was seen crowded counts as that. */
const CROWDED_MS = 20_000;
/** When a seat is free, all standbys come for it within this time. */
const RUSH_MS = 200;

/** What changes with the seat. */
export interface SeatListener {
  /** Maintenance is this server's now. */
  onMaintains(): void;
  /** New tasks are this server's from here on; some may wait already. */
  onAwake(): void;
  /** A seat is free: a pass is due. */
  onSeatFree(): void;
}

export interface CrewSeatOptions {
  readonly broker: { readonly seats: SeatsRole };
  readonly clock: Clock;
  readonly listener: SeatListener;
  /** The name of the crew. */
  readonly crewOf: () => string;
  /** Whether this server has use for a seat: it starts tasks, and is not paused. */
  readonly sits: () => boolean;
}

/**
 * The place of this server in its crew: the servers that do the same for the same queues. Those with one of the few seats start
 * what is new, and the first of them maintain the queues. The others stand by: they are called when those with a seat are full,
 * and take the seat of one that is gone. Until a server knows, or when it cannot know, it does all itself.
 */
export class CrewSeat {
  /** From 1; 0: it stands by. `undefined`: not known. */
  private number: number | undefined;
  private maintained = false;
  private awakeUntil = 0;
  private crowdedUntil = 0;
  private failingSince: number | undefined;
  private current: string;
  private ear: Promise<() => Promise<void>> | undefined;
  private hears = false;
  private closed = false;
  private queuesChanged = false;
  private readonly server = randomUUID();
  private readonly part = parseInt(this.server.slice(0, 8), 16) % CREW_PARTS;

  constructor(private readonly options: CrewSeatOptions) {
    this.current = options.crewOf();
  }

  /** The number of the seat; 0: this server stands by; `undefined`: not known. */
  get seat(): number | undefined {
    return this.number;
  }

  get crew(): string {
    return this.current;
  }

  /** Whether this server maintains its queues. */
  get maintains(): boolean {
    if (this.number === undefined) return true;
    return this.number > 0 ? this.number <= MAINTAINERS : !this.maintained;
  }

  /** Whether this server makes tasks of groups: all with a seat do, though only those that maintain look for them. */
  get aggregates(): boolean {
    return this.number !== 0 || this.maintains;
  }

  /** Whether this server polls armed queues, too: one of the crew does. */
  get polls(): boolean {
    return this.number === undefined || this.number === 1;
  }

  /** Whether new tasks are this server's. One that cannot hear calls is always awake. */
  get isAwake(): boolean {
    return this.number !== 0 || !this.hears || this.options.clock.elapsed() < this.awakeUntil;
  }

  /** Whether there may be standbys to call. */
  get isCrowded(): boolean {
    return this.crowdedUntil > 0 && this.options.clock.elapsed() < this.crowdedUntil;
  }

  /** The queues may be others now: then its crew is another. */
  reconsider(): void {
    this.queuesChanged = true;
  }

  async runOnce(): Promise<number> {
    const { seats } = this.options.broker;
    await this.follow();
    try {
      const sits = this.options.sits();
      const reply = await (sits ? seats.take : seats.leave).call(seats, this.current, this.server, this.part);
      if (!this.closed) this.learn(reply, sits);
    } catch (error) {
      this.failed(error);
      throw error;
    }
    return jittered(this.number === 0 ? TRY_INTERVAL_MS : KEEP_INTERVAL_MS);
  }

  /** Others may have the seat at once. */
  async close(): Promise<void> {
    this.closed = true;
    const { seats } = this.options.broker;
    await Promise.allSettled([this.stopListening(), seats.leave(this.current, this.server, this.part)]);
  }

  private async follow(): Promise<void> {
    if (!this.queuesChanged) return;
    this.queuesChanged = false;
    const crew = this.options.crewOf();
    if (crew === this.current) return;
    const before = this.current;
    this.current = crew;
    this.change(() => (this.number = undefined));
    void this.stopListening();
    await this.options.broker.seats.leave(before, this.server, this.part);
  }

  private learn({ seat, maintained, crowded, called }: SeatReply, sits: boolean): void {
    const now = this.options.clock.elapsed();
    this.failingSince = undefined;
    if (crowded) this.crowdedUntil = now + CROWDED_MS;
    this.change(() => {
      // Those with a seat hear of a new standby some seconds later: until then it is one of them.
      if (sits && seat === 0 && (this.number !== 0 || called)) this.awakeUntil = now + AWAKE_MS;
      this.number = seat;
      this.maintained = maintained;
    });
    if (sits && seat === 0) this.listen();
    else void this.stopListening();
  }

  /** The store did not reply for longer than seats are kept, or refuses: nobody can be relied on. */
  private failed(error: unknown): void {
    const now = this.options.clock.elapsed();
    this.failingSince ??= now;
    if (error instanceof BrokerUnavailableError && now - this.failingSince < SEAT_MS) return;
    this.change(() => (this.number = undefined));
  }

  private change(work: () => void): void {
    const { maintains, isAwake } = this;
    work();
    if (this.closed) return;
    if (!maintains && this.maintains) this.options.listener.onMaintains();
    if (!isAwake && this.isAwake) this.options.listener.onAwake();
  }

  /** Tries again in the next pass when it is refused. */
  private listen(): void {
    if (this.ear) return;
    const ear = this.options.broker.seats.listen(this.current, this.part, (call) => this.hear(call));
    this.ear = ear;
    const hears = (does: boolean): void => {
      if (this.ear !== ear) return;
      this.hears = does;
      if (!does) this.ear = undefined;
    };
    ear.then(
      () => hears(true),
      () => hears(false),
    );
  }

  private async stopListening(): Promise<void> {
    const { ear } = this;
    this.ear = undefined;
    this.hears = false;
    await ear?.then(
      (end) => end(),
      () => undefined,
    );
  }

  private hear(call: StandbyCall): void {
    if (this.closed || this.number !== 0) return;
    const { clock, listener } = this.options;
    if (call === 'seat') clock.after(Math.random() * RUSH_MS, () => !this.closed && listener.onSeatFree());
    else this.change(() => (this.awakeUntil = clock.elapsed() + AWAKE_MS));
  }
}

/** So that servers that started together do not act together. */
const jittered = (milliseconds: number): number => milliseconds * (0.75 + Math.random() / 2);
