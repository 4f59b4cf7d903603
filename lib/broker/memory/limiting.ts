import { floorSeconds } from '../../clock.js';
import {
  type CostCorrection,
  type LimitingRole,
  type StartLimit,
  type TakenCosts,
  type TakenStarts,
  TOKEN_REQUEST_MS,
  type TokenMove,
  type WaitlistPage,
  WAITLISTS_AT_ONCE,
} from '../limiting.js';
import type { TokenHolder } from '../obstacles.js';
import type { MemoryState } from './memory-state.js';
import { wellFormed } from './queue-store.js';
import { Starts } from './starts.js';
import { wakeWaiting } from './waitlists.js';

const byEnd = (one: TokenHolder, other: TokenHolder): number =>
  one.until - other.until || (one.holder < other.holder ? -1 : 1);

export class MemoryLimiting implements LimitingRole {
  readonly firstAllowance = 0;
  /** By scope: the holders of tokens, and until when (Unix seconds). */
  private readonly holdersByScope = new Map<string, Map<string, number>>();
  /** By scope: the server that has tasks and no token, and until when this is known (milliseconds). */
  private readonly requests = new Map<string, { readonly server: string; readonly until: number }>();
  private readonly startsByScope = new Map<string, Starts>();

  constructor(private readonly state: MemoryState) {}

  async acquireTokens(scope: string, max: number, deadline: number, names: readonly string[]): Promise<boolean[]> {
    this.state.assertOpen();
    const now = floorSeconds(this.state.now);
    const holders = this.holders(scope);
    for (const [holder, end] of holders) if (end < now) holders.delete(holder);
    return names.map(wellFormed).map((id) => {
      if (!holders.has(id) && holders.size >= max) return false;
      holders.set(id, deadline);
      return true;
    });
  }

  async releaseTokens(scope: string, names: readonly string[]): Promise<number> {
    this.state.assertOpen();
    const holders = this.holders(scope);
    return names.filter((id) => holders.delete(wellFormed(id))).length;
  }

  async moveTokens(scope: string, deadline: number, moves: readonly TokenMove[]): Promise<boolean[]> {
    this.state.assertOpen();
    const holders = this.holders(scope);
    return moves.map(({ from, to }) => {
      const had = [wellFormed(from), wellFormed(to)].filter((name) => holders.delete(name)).length > 0;
      if (had) holders.set(wellFormed(to), deadline);
      return had;
    });
  }

  async requestToken(scope: string, server: string): Promise<boolean> {
    const noted = await this.tokenRequest(scope);
    if (noted !== undefined) return noted === server;
    this.requests.set(wellFormed(scope), { server, until: this.state.now + TOKEN_REQUEST_MS });
    return true;
  }

  async tokenRequest(scope: string): Promise<string | undefined> {
    this.state.assertOpen();
    const name = wellFormed(scope);
    const request = this.requests.get(name);
    if (request && request.until > this.state.now) return request.server;
    this.requests.delete(name);
    return undefined;
  }

  async takeStarts(scope: string, limit: StartLimit, wanted: number): Promise<TakenStarts> {
    this.state.assertOpen();
    const { now } = this.state;
    const starts = this.starts(scope, limit.window);
    const left = Math.max(0, limit.max - starts.count(now));
    const granted = Math.min(wanted, left);
    const countedAt = granted > 0 ? starts.add(granted, now, limit) : 0;
    const countsFor = granted > 0 ? countedAt + limit.window - Math.floor(now) : 0;
    const retryIn = granted === left ? starts.untilFewer(now) : 0;
    return { granted, retryIn, countsFor, left: left - granted, countedAt };
  }

  async takeCosts(scope: string, limit: StartLimit, costs: readonly number[]): Promise<TakenCosts> {
    this.state.assertOpen();
    return this.starts(scope, limit.window).take(costs, limit, this.state.now);
  }

  async correctCosts(scope: string, window: number, corrections: readonly CostCorrection[]): Promise<void> {
    this.state.assertOpen();
    const starts = this.starts(scope, window);
    for (const { countedAt, by } of corrections) if (by < 0) starts.takeBack(countedAt, -by);
    for (const { by } of corrections) if (by > 0) starts.add(by, this.state.now, { max: Infinity });
  }

  async wakeWaiting(queue: string, waitlist: string, count: number): Promise<{ woken: number; left: number }> {
    return this.state.change(queue, (store, now) => wakeWaiting(store, waitlist, count, now));
  }

  /** The cursor is a place among the names: one may be passed over when others before it are gone. The next search finds it. */
  async findWaitlists(queue: string, cursor: string): Promise<WaitlistPage> {
    return this.state.change(queue, ({ waitlists }) => {
      const used = [...waitlists].filter(([, waitlist]) => waitlist.size > 0).map(([name]) => name);
      const [from, end] = [Number(cursor), Number(cursor) + WAITLISTS_AT_ONCE];
      return { names: used.slice(from, end), cursor: end < used.length ? String(end) : '' };
    });
  }

  async usedWaitlists(queue: string, names: readonly string[]): Promise<readonly string[]> {
    return this.state.change(queue, ({ waitlists }) =>
      names.filter((name) => (waitlists.get(wellFormed(name))?.size ?? 0) > 0),
    );
  }

  /** Who has tokens of a scope that have not expired. */
  held(scope: string): TokenHolder[] {
    const now = floorSeconds(this.state.now);
    const all = [...this.holders(scope)].map(([holder, until]) => ({ holder, until }));
    return all.filter(({ until }) => until >= now).sort(byEnd);
  }

  clear(): void {
    this.holdersByScope.clear();
    this.requests.clear();
    this.startsByScope.clear();
  }

  private holders(scope: string): Map<string, number> {
    const name = wellFormed(scope);
    let holders = this.holdersByScope.get(name);
    if (!holders) this.holdersByScope.set(name, (holders = new Map()));
    return holders;
  }

  starts(scope: string, window: number): Starts {
    const name = `${window} ${wellFormed(scope)}`;
    let starts = this.startsByScope.get(name);
    if (!starts) this.startsByScope.set(name, (starts = new Starts(window)));
    return starts;
  }
}
