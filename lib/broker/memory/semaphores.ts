import { wellFormed } from './queue-store.js';

/** The semaphores of one memory broker: by scope the holders and their deadlines (Unix seconds). */
export class Semaphores {
  private readonly byScope = new Map<string, Map<string, number>>();

  acquire(scope: string, taskId: string, max: number, deadline: number, now: number): boolean {
    const holders = this.holders(scope);
    for (const [holder, end] of holders) if (end < now) holders.delete(holder);
    const id = wellFormed(taskId);
    if (!holders.has(id) && holders.size >= max) return false;
    holders.set(id, deadline);
    return true;
  }

  release(scope: string, taskId: string): boolean {
    return this.holders(scope).delete(wellFormed(taskId));
  }

  clear(): void {
    this.byScope.clear();
  }

  private holders(scope: string): Map<string, number> {
    const name = wellFormed(scope);
    let holders = this.byScope.get(name);
    if (!holders) this.byScope.set(name, (holders = new Map()));
    return holders;
  }
}
