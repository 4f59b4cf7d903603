import { floorSeconds } from '../../clock.js';
import type { CostCorrection, LimitingRole, StartLimit, TakenCosts } from '../limiting.js';
import type { TokenHolder } from '../obstacles.js';
import { wakeWaiting } from './consumer.js';
import type { MemoryState } from './memory-state.js';
import { wellFormed } from './queue-store.js';
import { Starts } from './starts.js';

const byEnd = (one: TokenHolder, other: TokenHolder): number =>
  one.until - other.until || (one.holder < other.holder ? -1 : 1);

export class MemoryLimiting implements LimitingRole {
  /** By scope: the holders of tokens, and until when (Unix seconds). */
  private readonly holdersByScope = new Map<string, Map<string, number>>();
  private readonly startsByScope = new Map<string, Starts>();

  constructor(private readonly state: MemoryState) {}

  async acquireTokens(scope: string, max: number, deadline: number, taskIds: readonly string[]): Promise<boolean[]> {
    this.state.assertOpen();
    const now = floorSeconds(this.state.now);
    const holders = this.holders(scope);
    for (const [holder, end] of holders) if (end < now) holders.delete(holder);
    return taskIds.map(wellFormed).map((id) => {
      if (!holders.has(id) && holders.size >= max) return false;
      holders.set(id, deadline);
      return true;
    });
  }

  async releaseTokens(scope: string, taskIds: readonly string[]): Promise<number> {
    this.state.assertOpen();
    const holders = this.holders(scope);
    return taskIds.filter((id) => holders.delete(wellFormed(id))).length;
  }

  async takeStarts(scope: string, limit: StartLimit, wanted: number): Promise<{ granted: number; retryIn: number }> {
    this.state.assertOpen();
    const { now } = this.state;
    const starts = this.starts(scope, limit.window);
    const granted = Math.min(wanted, Math.max(0, limit.max - starts.count(now)));
    const retryIn = granted < wanted ? starts.untilFewer(now) : 0;
    starts.add(granted, now);
    return { granted, retryIn };
  }

  async takeCosts(scope: string, { max, window }: StartLimit, costs: readonly number[]): Promise<TakenCosts> {
    this.state.assertOpen();
    return this.starts(scope, window).take(costs, max, this.state.now);
  }

  async correctCosts(scope: string, window: number, corrections: readonly CostCorrection[]): Promise<void> {
    this.state.assertOpen();
    const starts = this.starts(scope, window);
    for (const { part, by } of corrections) if (by < 0) starts.takeBack(part, -by);
    for (const { by } of corrections) if (by > 0) starts.add(by, this.state.now);
  }

  async wakeWaiting(queue: string, waitlist: string, count: number): Promise<{ woken: number; left: number }> {
    return this.state.change(queue, (store, now) => wakeWaiting(store, waitlist, count, now));
  }

  async usedWaitlists(queue: string): Promise<readonly string[]> {
    return this.state.change(queue, (store) =>
      [...store.waitlists].filter(([, waitlist]) => waitlist.size > 0).map(([name]) => name),
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
