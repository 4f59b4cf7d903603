import type { LeaseGuard } from '../../broker/lease-guards.js';
import type { ActiveTask } from '../attempt/active-task.js';
import { QueueState } from './queue-state.js';
import type { ResolvedQueueOptions } from './queue-options.js';

/** The queues of one server. A removed queue stays until its tasks are settled. */
export class QueueRegistry {
  private readonly byName = new Map<string, QueueState>();

  constructor(
    queues: Readonly<Record<string, ResolvedQueueOptions>>,
    private readonly guard?: LeaseGuard,
  ) {
    for (const [name, options] of Object.entries(queues)) this.add(name, options);
  }

  get(name: string): QueueState | undefined {
    return this.byName.get(name);
  }

  /** Also the removed queues that still hold tasks. */
  all(): Iterable<QueueState> {
    return this.byName.values();
  }

  get size(): number {
    return this.byName.size;
  }

  /** The queues this server claims tasks of. */
  served(): QueueState[] {
    return [...this.byName.values()].filter((queue) => !queue.removed);
  }

  names(): string[] {
    return this.served().map(({ name }) => name);
  }

  priorities(): Record<string, number> {
    return Object.fromEntries(this.served().map(({ name, options }) => [name, options.priority]));
  }

  /** Adds a queue, or changes its options. */
  add(name: string, options: ResolvedQueueOptions): QueueState {
    const known = this.byName.get(name);
    if (known) {
      known.options = options;
      known.endRest();
      known.removed = false;
      return known;
    }
    const queue = new QueueState(name, options, this.guard);
    this.byName.set(name, queue);
    return queue;
  }

  /** @returns whether the queue was served */
  remove(name: string): boolean {
    const queue = this.byName.get(name);
    if (!queue || queue.removed) return false;
    queue.removed = true;
    this.forgetIfDone(queue);
    return true;
  }

  /** Drops a removed queue once nothing of it is held. */
  forgetIfDone(queue: QueueState): void {
    if (!queue.removed || queue.busy || queue.held.size > 0) return;
    // It may have been added again.
    if (this.byName.get(queue.name) === queue) this.byName.delete(queue.name);
  }

  /** Every task whose lease is held, those included that are finished and not yet settled. */
  *held(): Iterable<ActiveTask> {
    for (const queue of this.byName.values()) yield* queue.held;
  }

  /** Every task whose handler has not settled. */
  *running(): Iterable<ActiveTask> {
    for (const { held, lingering } of this.byName.values()) {
      for (const task of held) if (!task.handlerSettled) yield task;
      yield* lingering;
    }
  }
}
