import { type FairShare, fairnessText } from '../../wire/fairness.js';
import { type KeyTurn, shareAlone, type StoredKey } from '../fair-keys.js';
import { LinkedQueue } from './linked-queue.js';
import { SortedSet } from '../sorted-set.js';
import { Starts } from './starts.js';

/** A key whose slots are taken is looked at again after this time. */
const LOOK_AGAIN_MS = 2_000;

/** No key is held for longer than for this time and two windows of its rate. */
const LONG_MS = 2_000;

/** What the lines know of the tasks of their queue. */
export interface FairTasks {
  /** The share of a task; `undefined`: it is one of those without a key. */
  shareOf(id: string): FairShare | undefined;
  isRunning(id: string): boolean;
}

/** The tasks of one key. */
interface Line {
  share: FairShare;
  readonly ids: LinkedQueue;
  readonly holders: Set<string>;
  readonly starts: Map<number, Starts>;
}

/** The pending tasks of a fair queue: the front is the next task of the key whose turn it is. See lua/shared/fair.lua. */
export class FairPending extends LinkedQueue {
  private readonly lines = new Map<string, Line>();
  /** Keys by the turns they have had. */
  private readonly ring = new SortedSet();
  /** Keys that their own limits hold back, by the time of the next look in milliseconds. */
  private readonly held = new SortedSet();
  private readonly keys = new Map<string, string>();

  constructor(private readonly tasks: FairTasks) {
    super();
  }

  override pushBack(id: string): void {
    super.pushBack(id);
    this.lineOf(id).ids.pushBack(id);
  }

  override pushFront(id: string): void {
    super.pushFront(id);
    this.lineOf(id).ids.pushFront(id);
  }

  override remove(id: string): boolean {
    const key = this.keys.get(id);
    if (key !== undefined) this.lines.get(key)?.ids.remove(id);
    this.keys.delete(id);
    return super.remove(id);
  }

  /**
   * Takes the next task, and a slot of its key. `undefined` also when all that wait are held back.
   *
   * @param now milliseconds since the epoch
   * @param allowance see ExchangeRequest
   */
  popNext(now: number, allowance: number): string | undefined {
    this.openHeld(now);
    for (let next = this.ring.first(); next; next = this.ring.first()) {
      const { id: key, score } = next;
      const line = this.lines.get(key)!;
      const id = line.ids.popFront();
      if (id === undefined) {
        this.ring.delete(key);
        this.forget(key, line);
        continue;
      }
      const opensAt = this.opensAt(line, now);
      if (opensAt > now) {
        line.ids.pushFront(id);
        this.ring.delete(key);
        this.held.set(key, opensAt);
        continue;
      }
      this.ring.set(key, score + 1 / line.share.weight);
      this.remove(id);
      if (line.share.concurrency > 0) line.holders.add(id);
      if (line.share.rate > 0) this.startsOf(line).add(1, now, { max: line.share.rate, allowance });
      return id;
    }
    return undefined;
  }

  /** A task that went back, and was counted for `from` at the earliest, has not started. */
  giveBack(id: string, from: number, now: number): void {
    const key = this.keys.get(id);
    if (key === undefined) return; // it was superseded
    const line = this.lines.get(key)!;
    if (line.share.rate === 0) return;
    this.startsOf(line).giveBack(from, now);
    if (this.held.delete(key)) this.join(key, 1);
  }

  /** Milliseconds until a held key may have room, 0 when none is held. */
  opensIn(now: number): number {
    const first = this.held.first();
    return first ? Math.max(1, Math.ceil(first.score - now)) : 0;
  }

  /** When the rate of a held key lets a task start, in milliseconds since the epoch; `undefined` when none waits for its rate. */
  nextStart(now: number): number | undefined {
    const waits = [...this.held].map(({ id }) => this.lines.get(id)!);
    const times = waits.flatMap((line) => (line.share.rate > 0 ? [this.startsIn(line, now)] : []));
    const later = times.filter((time) => time > 0);
    return later.length === 0 ? undefined : now + Math.min(...later);
  }

  /** Whether a task may be taken, as far as limits of keys are concerned. */
  hasOpen(now: number): boolean {
    this.openHeld(now);
    return this.ring.size > 0;
  }

  /** Keys with tasks or slots, and how many tasks wait. */
  *sizes(held: boolean, now: number): Iterable<[key: string, waiting: number]> {
    this.openHeld(now);
    for (const [key, line] of this.lines) {
      const isMeant = held ? this.held.score(key) !== undefined : line.ids.size > 0 || this.taken(line) > 0;
      if (isMeant) yield [key, line.ids.size];
    }
  }

  /** How many keys have waiting tasks, and how many of these are held. */
  count(now: number): { waiting: number; held: number } {
    this.openHeld(now);
    let waiting = 0;
    for (const { ids } of this.lines.values()) if (ids.size > 0) waiting++;
    return { waiting, held: this.held.size };
  }

  /** @param named of how many tasks with a slot the ids are wanted */
  describe(key: string, named: number, now: number): StoredKey | undefined {
    const line = this.lines.get(key);
    if (!line) return undefined;
    this.openHeld(now);
    const taken = this.taken(line);
    const waiting = line.ids.size;
    const share = waiting > 0 ? line.share : shareAlone(key);
    const startsIn = share.rate > 0 ? this.startsIn(line, now) : 0;
    const holders = [...line.holders].slice(0, named);
    return { key, waiting, share, taken, holders, startsIn, lookAt: this.held.score(key) };
  }

  /** Where a task is in the line of the key; `undefined` when it is not there. */
  turnOf(key: string, id: string): KeyTurn | undefined {
    if (this.keys.get(id) !== key) return undefined;
    let ahead = 0;
    for (const other of this.lineBy(key)) {
      if (other === id) break;
      ahead++;
    }
    return { ahead, others: this.ring.size - (this.ring.score(key) === undefined ? 0 : 1) };
  }

  /** The tasks of a key, in their order. */
  lineBy(key: string): Iterable<string> {
    return this.lines.get(key)?.ids ?? [];
  }

  private openHeld(now: number): void {
    for (const { id: key, score } of this.held.upTo(Infinity)) {
      const line = this.lines.get(key)!;
      const isFreed = line.share.concurrency > 0 && this.taken(line) < line.share.concurrency;
      const isLong = score - now - LONG_MS > 2 * line.share.window; // held by a clock that was ahead
      if (score > now && !isLong && !(isFreed && this.opensAt(line, now) <= now)) continue;
      this.held.delete(key);
      this.join(key, 1);
    }
  }

  /** When a task of the line may start; now, if one may. */
  private opensAt(line: Line, now: number): number {
    const { concurrency, rate } = line.share;
    let at = now;
    if (concurrency > 0 && this.taken(line) >= concurrency) at = now + LOOK_AGAIN_MS;
    const startsIn = rate > 0 ? this.startsIn(line, now) : 0;
    return startsIn > 0 ? Math.max(at, now + startsIn) : at;
  }

  /** Milliseconds until its rate lets more start; 0 while some may. */
  private startsIn(line: Line, now: number): number {
    const starts = this.startsOf(line);
    return starts.count(now) < line.share.rate ? 0 : Math.max(1, starts.untilFewer(now));
  }

  private taken(line: Line): number {
    for (const id of line.holders) if (!this.tasks.isRunning(id)) line.holders.delete(id);
    return line.holders.size;
  }

  private startsOf(line: Line): Starts {
    const { window } = line.share;
    let starts = line.starts.get(window);
    if (!starts) line.starts.set(window, (starts = new Starts(window)));
    return starts;
  }

  private lineOf(id: string): Line {
    const share = this.tasks.shareOf(id) ?? shareAlone('');
    let line = this.lines.get(share.key);
    if (!line) {
      line = { share, ids: new LinkedQueue(), holders: new Set(), starts: new Map() };
      this.lines.set(share.key, line);
    }
    if (fairnessText(line.share) !== fairnessText(share) && this.held.delete(share.key)) this.join(share.key, 1); // it may have room
    line.share = share;
    this.keys.set(id, share.key);
    if (this.ring.score(share.key) === undefined && this.held.score(share.key) === undefined) {
      this.join(share.key, share.weight);
    }
    return line;
  }

  /** Behind the key that is next, as if it had just had its turn. */
  private join(key: string, weight: number): void {
    const first = this.ring.first();
    this.ring.set(key, first ? first.score + 1 / weight : 0);
  }

  /** A line that has had no limit leaves nothing behind. */
  private forget(key: string, line: Line): void {
    if (line.share.rate === 0 && this.taken(line) === 0) this.lines.delete(key);
  }
}
