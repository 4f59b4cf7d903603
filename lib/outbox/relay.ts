import { randomUUID } from 'node:crypto';
import { backoff } from '../async.js';
import { SystemClock } from '../clock.js';
import { Loop, type NextDelay } from '../loop.js';
import { RowSender, type SenderDeps } from './sender.js';
import type { EndedRow, OutboxStore, OwnedSender, RowNotices, TakenRow } from './store.js';

/** Numbers that tests change. Times in milliseconds. */
export interface RelayTuning {
  /** How long a sender stays with a relay that says nothing. */
  readonly lease: number;
  /** An idle relay writes nothing for longer than this. */
  readonly renewEvery: number;
  /** How often a relay looks for rows of relays that are gone. */
  readonly adoptEvery: number;
  readonly purgeEvery: number;
  readonly purgedAtOnce: number;
  /** Rows of one exchange with the database. */
  readonly batchSize: number;
}

const TUNING: RelayTuning = {
  lease: 30_000,
  renewEvery: 10_000,
  adoptEvery: 10_000,
  purgeEvery: 60_000,
  purgedAtOnce: 1_000,
  batchSize: 1_000,
};

/** How many batches may wait for queues that Redis does not take, before no more rows are taken. */
const MOST_BATCHES = 20;

/** The longest pause between tries to listen, in milliseconds. */
const LONGEST_LISTEN_PAUSE_MS = 30_000;

/** Exchanges of one pass. */
const EXCHANGES_PER_PASS = 50;

export interface RelayOptions {
  /** Milliseconds between looks for rows, of which there is no notice. */
  readonly pollInterval: number;
  /** How long rows are kept that have ended, in milliseconds. */
  readonly retention: number;
}

/**
 * Brings the rows of an outbox to Redis. It owns a sender in the database, by a lease:
 * 1. send the rows that the sender has taken;
 * 2. in one transaction, end those that Redis has, and take new ones;
 * 3. the same with ordered rows, if there are any and it can have their sender, which it gives back when there are none;
 * 4. again, until there are none; then wait for a notice, or poll.
 * After any error it begins with what the database says, and sends again what may have arrived. Beside that, it
 * takes over senders whose relays are gone, and removes old rows.
 */
export class OutboxRelay {
  private readonly owner = randomUUID();
  private readonly loop: Loop;
  private sender: RowSender | undefined;
  /** The one of ordered rows, while this relay has it. */
  private ordered: RowSender | undefined;
  private renewedAt = -Infinity;
  private adoptedAt = -Infinity;
  private purgedAt = -Infinity;
  private endListening: (() => Promise<void>) | undefined;
  private listening: 'no' | 'trying' | 'yes' = 'no';
  private listenFailures = 0;
  private listenAt = -Infinity;
  private noticed = false;
  /** There are rows, as somebody says: it need not ask whether. */
  private expected = false;
  private stopped = false;
  private last: Promise<void> = Promise.resolve();
  private readonly clock = new SystemClock(); // rows have real times, whatever clock tasks have
  private readonly tuning: RelayTuning;

  constructor(
    private readonly store: OutboxStore,
    private readonly deps: SenderDeps,
    private readonly options: RelayOptions,
    tuning: Partial<RelayTuning> = {},
  ) {
    this.tuning = { ...TUNING, ...tuning };
    const { clock } = this;
    this.loop = new Loop({
      name: 'outbox relay',
      clock,
      runOnce: () => this.alone(() => this.pass()),
      onError: (loop, error) => deps.events.emit('loopFailed', { loop, error }),
    });
  }

  start(): void {
    this.loop.start();
  }

  /** Whether it has notice of rows of other processes. */
  get notices(): RowNotices {
    if (!this.store.listen) return 'own';
    return this.listening === 'yes' ? 'all' : 'lost';
  }

  /** Has it look for rows now. */
  nudge(): void {
    this.noticed = true;
    this.expected = true;
    this.loop.trigger();
  }

  /** Sends all rows that are committed, as far as Redis takes them. @throws what the database throws */
  async drain(): Promise<void> {
    while ((await this.alone(() => this.advance())) > 0);
  }

  /** Resolves when the pass under way is over, and its sender is given back. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.loop.stop();
    await this.endListening?.();
    for (const sender of [this.sender, this.ordered]) {
      if (sender) await this.store.release(sender.id, this.owner).catch(() => undefined);
    }
  }

  /** A pass and `drain` do not mix. */
  private alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.last.then(work);
    this.last = result.then(
      () => undefined,
      () => undefined,
    );
    return result;
  }

  private async pass(): Promise<NextDelay> {
    void this.listen(); // it may take long; until then there is the poll
    await this.tidy();
    this.noticed = false;
    for (let exchanges = 0; exchanges < EXCHANGES_PER_PASS; exchanges++) {
      if (this.stopped || (await this.advance()) === 0) break;
      if (exchanges === EXCHANGES_PER_PASS - 1) return 0;
    }
    if (this.noticed) return 0;
    const tries = [this.sender, this.ordered].map((sender) => sender?.nextTry ?? Infinity);
    return Math.min(this.options.pollInterval, ...tries);
  }

  /** One round: sends what is taken, ends it, takes more. Returns 0 when there is nothing more to do now. */
  private async advance(): Promise<number> {
    try {
      this.sender ??= this.senderOf(await this.store.takeSender(this.owner, this.tuning.lease));
      const taken = await this.exchange(this.sender);
      return taken + (await this.advanceOrdered());
    } catch (error) {
      this.sender = undefined; // whether the last step was done, only the database knows
      this.ordered = undefined;
      throw error;
    }
  }

  private senderOf(owned: OwnedSender): RowSender {
    return new RowSender(owned, this.deps, this.store);
  }

  /** The same with ordered rows, while there are any, and no other relay has their sender. */
  private async advanceOrdered(): Promise<number> {
    const { store, owner } = this;
    if (!this.ordered) {
      if (!(await store.hasOrdered())) return 0;
      const owned = await store.takeOrdered(owner, this.tuning.lease);
      if (!owned) return 0;
      this.ordered = this.senderOf(owned);
    }
    const sender = this.ordered;
    await sender.send();
    if (sender.isBehind) {
      this.ordered = undefined;
      return this.abandon(sender);
    }
    const { holdsBack } = sender;
    const rows = await this.take(sender, sender.takeEnded());
    if (rows && (rows.length > 0 || sender.backlog > 0)) return rows.length + (holdsBack ? 1 : 0);
    this.ordered = undefined;
    if (!rows) return 1;
    await store.release(sender.id, owner); // another may be the first to have notice of the next
    return 0;
  }

  /**
   * Has the rows of a sender sent under another one, whose numbers Redis has none of. Those that came before the database lost what it knew
   * come twice.
   */
  private async abandon(sender: RowSender): Promise<number> {
    if (await this.end(sender)) await this.store.abandon?.(sender.id, this.owner);
    return 1;
  }

  /** Ends rows and takes none. Returns whether the sender is still this relay's. */
  private async end(sender: RowSender): Promise<boolean> {
    const request = { sender: sender.id, owner: this.owner, ended: sender.takeEnded(), take: 0, except: [] };
    return (await this.store.exchange(request, this.tuning.lease)) !== undefined;
  }

  /** Ends rows and takes more. `undefined`: the sender is another's by now. */
  private async take(sender: RowSender, ended: EndedRow[]): Promise<readonly TakenRow[] | undefined> {
    const { lease, batchSize } = this.tuning;
    const take = Math.max(0, Math.min(batchSize, MOST_BATCHES * batchSize - sender.backlog));
    const request = { sender: sender.id, owner: this.owner, ended, take, except: sender.busyQueues };
    const rows = await this.store.exchange(request, lease);
    if (rows) sender.add(rows);
    return rows;
  }

  private async exchange(sender: RowSender): Promise<number> {
    await sender.send();
    if (sender.isBehind) {
      this.sender = undefined;
      return this.abandon(sender);
    }
    const { holdsBack } = sender;
    const ended = sender.takeEnded();
    const expected = this.expected;
    this.expected = false;
    if (
      ended.length === 0 &&
      !expected &&
      this.clock.elapsed() - this.renewedAt < this.tuning.renewEvery &&
      !(await this.store.hasNew(sender.busyQueues))
    ) {
      return 0;
    }
    const rows = await this.take(sender, ended);
    if (!rows) {
      this.sender = undefined; // this relay was away for longer than its lease
      return 1;
    }
    this.renewedAt = this.clock.elapsed();
    return rows.length + (holdsBack ? 1 : 0);
  }

  private async tidy(): Promise<void> {
    const now = this.clock.elapsed();
    const { adoptEvery, purgeEvery, purgedAtOnce } = this.tuning;
    if (now - this.adoptedAt >= adoptEvery) {
      this.adoptedAt = now;
      await this.adopt();
    }
    if (now - this.purgedAt >= purgeEvery) {
      const removed = await this.store.purge(this.options.retention, purgedAtOnce);
      if (removed < purgedAtOnce) this.purgedAt = now;
    }
  }

  /** Sends the rows of senders whose relays are gone. */
  private async adopt(): Promise<void> {
    for (;;) {
      const orphan = await this.store.takeOrphan(this.owner, this.tuning.lease);
      if (!orphan) return;
      const sender = this.senderOf(orphan);
      for (let holdsBack = true; holdsBack;) {
        await sender.send();
        if (sender.isBehind) return void (await this.abandon(sender));
        ({ holdsBack } = sender);
        if (!(await this.end(sender))) return; // it is another's by now
      }
      if (sender.backlog > 0) return; // it stays this relay's for the time of the lease; then it is tried again
      await this.store.release(sender.id, this.owner);
    }
  }

  /** Never rejects. */
  private async listen(): Promise<void> {
    const { store, clock } = this;
    if (this.listening !== 'no' || !store.listen || clock.elapsed() < this.listenAt) return;
    this.listening = 'trying';
    let isLost = false;
    const onLost = (): void => {
      isLost = true;
      this.listening = 'no';
      this.endListening = undefined;
    };
    try {
      const end = await store.listen(() => this.nudge(), onLost);
      if (this.stopped) return await end();
      if (isLost) return;
      this.endListening = end;
      this.listening = 'yes';
      this.listenFailures = 0;
      this.noticed = true; // of what was committed before it listened, it had no notice
      this.loop.trigger();
    } catch (error) {
      this.listening = 'no';
      this.listenAt = clock.elapsed() + backoff(++this.listenFailures, { longest: LONGEST_LISTEN_PAUSE_MS });
      if (!this.stopped) this.deps.events.emit('loopFailed', { loop: 'outbox notices', error });
    }
  }
}
