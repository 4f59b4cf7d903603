import { randomUUID } from 'node:crypto';
import { finishesWithin, withTimeout } from '../../async.js';
import type { Broker, WakeSource } from '../../broker/broker.js';
import type { PassReply } from '../../broker/links.js';
import type { Clock } from '../../clock.js';
import type { AsynqEvents } from '../../events/events.js';
import type { Relay } from '../../links/relay.js';
import { QUEUE_REPLY_TIMEOUT_MS } from '../fetching/queue-state.js';
import { QueuePasses } from './queue-passes.js';

/** Between two passes over a place that this server keeps, on average. */
const PASS_INTERVAL_MS = 2_000;
/** Between two tries to become the keeper of a place, on average: only one server of the fleet is. */
const TRY_INTERVAL_MS = 5_000;
/** Two passes. When a keeper dies, another server takes its place within this time and one such interval. */
const LEASE_MS = 5_000;
/** Between two looks for places of a server that knows of none: a notice comes before, if Redis sends any. */
const IDLE_INTERVAL_MS = 30_000;
const UNARMED_INTERVAL_MS = 3_000;
/** A message that was not carried for this long is found; before that somebody is about to carry it. */
const LATE_AFTER_SECONDS = 2;
/** Within what time a server that knows of no place looks for one, when it has made a link. */
const NOTICE_DELAY_MS = 500;
/** Between two passes over any places, at least. */
const MIN_DELAY_MS = 100;
/** Steps of one pass over one place. */
const MAX_STEPS = 100;
/** How long a step waits for its messages to be carried: the next one finds them again if they are not. */
const CARRY_TIMEOUT_MS = 1_000;

/** Between two searches of a place for late results, on average; the first comes within this time. */
const SEARCH_INTERVAL_MS = 3_600_000;

/** Its name as a loop. */
export const LINK_KEEPER = 'link keeper';

export interface LinkKeeperOptions {
  readonly broker: Pick<Broker, 'links' | 'maintenance'>;
  /** Calls when there are links where there were none. */
  readonly source: Pick<WakeSource, 'armPlaces'>;
  readonly relay: Pick<Relay, 'carry' | 'idle'>;
  readonly clock: Clock;
  readonly events: AsynqEvents;
}

/**
 * Keeps the promise that every wait ends. For each place where links live one server of the fleet
 * looks, every two seconds, for messages that nobody carried, for deadlines, and for tasks whose
 * watchers nobody notified: Go servers know no links. While nothing is linked it reads one key every
 * half minute.
 */
export class LinkKeeper {
  private readonly owner = randomUUID();
  /** By place: when its next pass is due. */
  private readonly due = new Map<string, number>();
  /** The places whose pass begins now. */
  private begun: ReadonlySet<string> = new Set();
  private readonly kept = new Set<string>();
  /** By place: when it is searched for late results. */
  private readonly searches = new Map<string, number>();
  private searching: Promise<void> | undefined;
  private readonly passes: QueuePasses<void>;
  private readAt = -Infinity;
  private noticed = false;
  /** A notice comes when there are places. */
  private armed = false;
  private closed = false;

  constructor(private readonly options: LinkKeeperOptions) {
    const onError = (error: unknown): void => this.report(error);
    this.passes = new QueuePasses(options.clock, (place) => this.keepIfBegun(place), onError);
  }

  /**
   * This process has made or seen a link. Returns within how many milliseconds a pass should begin;
   * `undefined` when one is about to anyway.
   */
  notice(): number | undefined {
    if (this.due.size > 0) return undefined;
    this.noticed = true;
    return NOTICE_DELAY_MS;
  }

  /** One pass over the places that are due. */
  async runOnce(): Promise<number> {
    this.noticed = false;
    await this.readPlaces();
    if (this.due.size === 0) return this.noticed ? NOTICE_DELAY_MS : this.untilNextRead();
    const retryIn = await this.begin();
    const next = Math.min(...this.due.values()) - this.options.clock.elapsed();
    return Math.max(MIN_DELAY_MS, Math.min(retryIn, next));
  }

  /** Does at once all there is to do anywhere, for a server whose loops do not run. */
  async runByHand(): Promise<void> {
    for (const place of await this.options.broker.links.places()) {
      for (let steps = 0; steps < MAX_STEPS && (await this.step(place, 0)).settled > 0; steps++);
    }
  }

  /** Leaves its places to other servers. Idempotent. */
  async close(): Promise<void> {
    this.closed = true;
    const places = [...this.kept];
    this.kept.clear();
    await Promise.allSettled(places.map((place) => this.options.broker.links.lease(place, this.owner, 1)));
  }

  /** Places that are gone are forgotten. A failure stops nothing that is known. */
  private async readPlaces(): Promise<void> {
    const { clock } = this.options;
    if (this.due.size > 0 && clock.elapsed() - this.readAt < PASS_INTERVAL_MS) return;
    try {
      this.learn(await withTimeout(this.read(), QUEUE_REPLY_TIMEOUT_MS, clock));
    } catch (error) {
      if (this.due.size === 0) throw error;
      this.report(error);
    }
  }

  /** A server without a place arms a notice; where Redis sends none it reads more often. */
  private async read(): Promise<string[]> {
    const { broker, source } = this.options;
    this.armed = this.due.size === 0; // a notice may come before the reply
    if (!this.armed) return broker.links.places();
    try {
      return await source.armPlaces();
    } catch {
      this.armed = false;
      return broker.links.places();
    }
  }

  private learn(places: readonly string[] | undefined): void {
    if (!places) return; // no reply: the next pass reads again
    const now = this.options.clock.elapsed();
    this.readAt = now;
    const known = new Set(places);
    for (const place of this.due.keys()) {
      if (known.has(place)) continue;
      this.due.delete(place);
      this.kept.delete(place);
      this.searches.delete(place);
    }
    for (const place of places) if (!this.due.has(place)) this.due.set(place, now);
  }

  /** Begins the passes that are due; one that hangs is due again later, and begins when it is over. */
  private async begin(): Promise<number> {
    const now = this.options.clock.elapsed();
    const begun = [...this.due].filter(([, due]) => due <= now).map(([place]) => place);
    for (const place of begun) this.due.set(place, now + jittered(PASS_INTERVAL_MS));
    this.begun = new Set(begun);
    return (await this.passes.run([...this.due.keys()])).retryIn;
  }

  private async keepIfBegun(place: string): Promise<void> {
    if (!this.begun.has(place)) return;
    if (await this.keep(place)) {
      this.kept.add(place);
      this.search(place);
      return;
    }
    this.kept.delete(place);
    if (this.due.has(place)) this.due.set(place, this.options.clock.elapsed() + jittered(TRY_INTERVAL_MS));
  }

  /** Returns whether this server keeps the place. */
  private async keep(place: string): Promise<boolean> {
    const { broker, relay, clock } = this.options;
    let before: ReadonlySet<string> = new Set();
    for (let steps = 0; steps < MAX_STEPS && !this.closed; steps++) {
      if (!(await broker.links.lease(place, this.owner, LEASE_MS))) return false;
      const { settled, parcels } = await this.step(place, LATE_AFTER_SECONDS);
      // What could not be carried is found again: the next pass tries it.
      if (settled === 0 && parcels.every(({ key }) => before.has(key))) break;
      before = new Set(parcels.map(({ key }) => key));
      if (parcels.length > 0) await finishesWithin(relay.idle(), CARRY_TIMEOUT_MS, clock);
    }
    return true;
  }

  /** Deletes late results of Go servers, in the background, one place at a time. The first search is at a random time. */
  private search(place: string): void {
    const now = this.options.clock.elapsed();
    const at = this.searches.get(place) ?? now + Math.random() * SEARCH_INTERVAL_MS;
    this.searches.set(place, at);
    if (this.searching || at > now) return;
    this.searches.set(place, now + jittered(SEARCH_INTERVAL_MS));
    this.searching = this.options.broker.maintenance.deleteLateResults(place).then(
      () => void (this.searching = undefined),
      (error: unknown) => {
        this.searching = undefined;
        if (!this.closed) this.report(error);
      },
    );
  }

  private async step(place: string, age: number): Promise<PassReply> {
    const { broker, relay, events } = this.options;
    const reply = await broker.links.keep(place, age);
    const { settled, late, damage } = reply;
    if (damage) this.report(damage);
    if (reply.parcels.length > 0 || reply.news) relay.carry(reply);
    if (settled + late > 0) events.emit('linksKept', { place, settled, parcels: late });
    return reply;
  }

  private untilNextRead(): number {
    return jittered(this.armed ? IDLE_INTERVAL_MS : UNARMED_INTERVAL_MS);
  }

  private report(error: unknown): void {
    this.options.events.emit('loopFailed', { loop: LINK_KEEPER, error });
  }
}

/** So that servers that started together do not act together. */
const jittered = (milliseconds: number): number => milliseconds * (0.75 + Math.random() / 2);
