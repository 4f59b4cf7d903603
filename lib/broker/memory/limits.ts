import type { StartLimit } from '../limiting.js';
import { wellFormed } from './queue-store.js';
import { Starts } from './starts.js';

/** What one memory broker bounds for all: tokens by scope (holders and their deadlines, in Unix seconds), and starts. */
export class Limits {
  private readonly holdersByScope = new Map<string, Map<string, number>>();
  private readonly startsByScope = new Map<string, Starts>();

  acquire(scope: string, max: number, deadline: number, taskIds: readonly string[], now: number): boolean[] {
    const holders = this.holders(scope);
    for (const [holder, end] of holders) if (end < now) holders.delete(holder);
    return taskIds.map(wellFormed).map((id) => {
      if (!holders.has(id) && holders.size >= max) return false;
      holders.set(id, deadline);
      return true;
    });
  }

  release(scope: string, taskIds: readonly string[]): number {
    const holders = this.holders(scope);
    return taskIds.filter((id) => holders.delete(wellFormed(id))).length;
  }

  takeStarts(scope: string, { max, window }: StartLimit, wanted: number, now: number) {
    const name = `${window} ${wellFormed(scope)}`;
    let starts = this.startsByScope.get(name);
    if (!starts) this.startsByScope.set(name, (starts = new Starts(window)));
    const granted = Math.min(wanted, Math.max(0, max - starts.count(now)));
    const retryIn = granted < wanted ? starts.untilFewer(now) : 0;
    starts.add(granted, now);
    return { granted, retryIn };
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
}
