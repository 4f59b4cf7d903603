import type { TaskPlace } from '../broker/task-place.js';
import type { AsynqEvents, TaskOutcome } from '../events/events.js';
import { decodeResult, encodeJson } from '../task/codec.js';

type End = (result: unknown) => void;

/** Successes of tasks that a server in this process has stored: who waits for one need not read it. */
export class LocalEnds {
  private readonly waiting = new Map<string, Set<End>>();
  /** Queues of which the last awaited result was stored here: the next one is likely to be, too. */
  private readonly near = new Set<string>();
  private off: (() => void) | undefined;

  constructor(private readonly events: AsynqEvents | undefined) {}

  /** @returns ends it */
  wait({ queue, id }: TaskPlace, end: End): () => void {
    if (!this.events) return () => undefined;
    this.off ??= this.events.on('taskFinished', (outcome) => this.finished(outcome));
    const key = `${queue}\n${id}`;
    const ends = this.waiting.get(key) ?? new Set();
    this.waiting.set(key, ends.add(end));
    return () => {
      ends.delete(end);
      if (ends.size === 0 && this.waiting.get(key) === ends) this.waiting.delete(key);
      if (this.waiting.size > 0) return;
      this.off?.();
      this.off = undefined;
    };
  }

  /** Whether the next result of this queue is likely to be stored here. */
  isNear(queue: string): boolean {
    return this.near.has(queue);
  }

  /** A result of this queue, awaited here, was stored elsewhere. */
  missed(queue: string): void {
    this.near.delete(queue);
  }

  private finished({ outcome, task, result }: TaskOutcome): void {
    const ends = outcome === 'completed' ? this.waiting.get(`${task.queue}\n${task.id}`) : undefined;
    if (!ends || result === undefined) return; // it may have been written before
    this.near.add(task.queue);
    for (const end of ends) {
      try {
        end(decodeResult(encodeJson(result)));
      } catch {
        return; // nothing could be stored of it
      }
    }
  }
}
