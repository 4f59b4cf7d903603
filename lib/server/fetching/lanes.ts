import type { ActiveTask } from '../attempt/active-task.js';
import { Lane } from './lane.js';
import type { ResolvedQueueOptions } from './queue-options.js';

/** The queues of one server. A removed queue stays until its tasks are settled. */
export class Lanes {
  private readonly byQueue = new Map<string, Lane>();

  constructor(queues: Readonly<Record<string, ResolvedQueueOptions>>) {
    for (const [queue, options] of Object.entries(queues)) this.add(queue, options);
  }

  get(queue: string): Lane | undefined {
    return this.byQueue.get(queue);
  }

  /** Every queue with something to do here, the removed ones that still hold tasks included. */
  all(): Iterable<Lane> {
    return this.byQueue.values();
  }

  get size(): number {
    return this.byQueue.size;
  }

  /** The queues this server works on. */
  served(): Lane[] {
    return [...this.byQueue.values()].filter((lane) => !lane.removed);
  }

  queues(): string[] {
    return this.served().map(({ queue }) => queue);
  }

  priorities(): Record<string, number> {
    return Object.fromEntries(this.served().map(({ queue, options }) => [queue, options.priority]));
  }

  /** Adds a queue, or changes its options. */
  add(queue: string, options: ResolvedQueueOptions): Lane {
    const known = this.byQueue.get(queue);
    if (known) {
      known.options = options;
      known.limitTimer?.cancel();
      known.limitTimer = undefined;
      known.removed = false;
      return known;
    }
    const lane = new Lane(queue, options);
    this.byQueue.set(queue, lane);
    return lane;
  }

  /** @returns whether the queue was served */
  remove(queue: string): boolean {
    const lane = this.byQueue.get(queue);
    if (!lane || lane.removed) return false;
    lane.removed = true;
    this.forgetIfDone(lane);
    return true;
  }

  /** Lets a removed queue go once nothing of it is held. */
  forgetIfDone(lane: Lane): void {
    if (!lane.removed || lane.busy || lane.held.size > 0) return;
    if (this.byQueue.get(lane.queue) === lane) this.byQueue.delete(lane.queue); // it may have been added anew
  }

  /** Every task whose lease is held, finished ones that wait for Redis included. */
  *held(): Iterable<ActiveTask> {
    for (const lane of this.byQueue.values()) yield* lane.held;
  }

  /** Every task whose handler has not settled. */
  *running(): Iterable<ActiveTask> {
    for (const { held, lingering } of this.byQueue.values()) {
      for (const task of held) if (!task.handlerSettled) yield task;
      yield* lingering;
    }
  }

  heldCount(): number {
    let count = 0;
    for (const lane of this.byQueue.values()) count += lane.held.size;
    return count;
  }
}
