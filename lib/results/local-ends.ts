import type { TaskPlace } from '../broker/task-place.js';
import type { AsynqEvents, TaskOutcome } from '../events/events.js';
import { decodeResult, encodeJson } from '../task/codec.js';

type End = (result: unknown) => void;

/** Successes of tasks that a server in this process has stored: who waits for one need not read it. */
export class LocalEnds {
  private readonly waiting = new Map<string, Set<End>>();
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

  private finished({ outcome, task, result }: TaskOutcome): void {
    const ends = outcome === 'completed' ? this.waiting.get(`${task.queue}\n${task.id}`) : undefined;
    if (!ends || result === undefined) return; // it may have been written before
    for (const end of ends) {
      try {
        end(decodeResult(encodeJson(result)));
      } catch {
        return; // nothing could be stored of it
      }
    }
  }
}
