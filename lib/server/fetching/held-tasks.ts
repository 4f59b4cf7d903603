import type { LeaseGuard } from '../../broker/lease-guards.js';
import type { ActiveTask } from '../attempt/active-task.js';

/**
 * The tasks of one queue whose lease a server holds. Every task passes through here, so to add or remove one costs no look-up: a
 * task knows its position, and the last one takes the place of one that goes.
 */
export class HeldTasks implements Iterable<ActiveTask> {
  private readonly tasks: ActiveTask[] = [];
  private added = 0;

  /** @param guard keeps their leases while the event loop stands still */
  constructor(private readonly guard?: LeaseGuard) {}

  get size(): number {
    return this.tasks.length;
  }

  add(task: ActiveTask): void {
    task.heldNumber = this.added++;
    task.heldAt = this.tasks.push(task) - 1;
    this.guard?.hold(task.lease, task.deadlineAt);
  }

  has(task: ActiveTask): boolean {
    return this.tasks[task.heldAt] === task;
  }

  delete(task: ActiveTask): void {
    if (!this.has(task)) return;
    const last = this.tasks.pop()!;
    if (last !== task) {
      this.tasks[task.heldAt] = last;
      last.heldAt = task.heldAt;
    }
    task.heldAt = -1;
    this.guard?.release(task.lease);
  }

  /** Those held now, in the order in which they were added. */
  [Symbol.iterator](): IterableIterator<ActiveTask> {
    return this.tasks.toSorted((one, other) => one.heldNumber - other.heldNumber).values();
  }
}
