import { ClosedError } from '../../errors.js';
import type { WakeListener, WakeSource } from '../broker.js';
import { type QueueStore, wellFormed } from './queue-store.js';

/** One-shot notices of one server, as CLIENT TRACKING gives them: armed by a reading, spent by the next change. */
export class MemoryWakeSource implements WakeSource {
  private readonly pending = new Set<string>();
  private readonly delayed = new Set<string>();
  private closed = false;

  constructor(
    private readonly listener: WakeListener,
    private readonly store: (queue: string) => QueueStore,
    private readonly onClose: (source: MemoryWakeSource) => void,
  ) {}

  async armPending(queues: readonly string[]): Promise<Map<string, number>> {
    this.assertOpen();
    for (const queue of queues) this.pending.add(wellFormed(queue));
    return new Map(queues.map((queue) => [queue, this.store(queue).backlog]));
  }

  async armDelayed(queues: readonly string[]): Promise<number | undefined> {
    this.assertOpen();
    for (const queue of queues) this.delayed.add(wellFormed(queue));
    const scores = queues.map((queue) => this.store(queue).nextDue ?? Infinity);
    const next = Math.min(...scores);
    return next === Infinity ? undefined : next;
  }

  async close(): Promise<void> {
    this.end();
    this.onClose(this);
  }

  /** After this nothing is noticed any more. */
  end(): void {
    this.closed = true;
    this.pending.clear();
    this.delayed.clear();
  }

  /** Tells the listener after the call that made the change, so that it finds the broker between two calls. */
  notePending(queue: string): void {
    if (this.pending.delete(queue)) this.tell(() => this.listener.onPending(queue));
  }

  noteDelayed(queue: string): void {
    if (this.delayed.delete(queue)) this.tell(() => this.listener.onDelayed(queue));
  }

  private tell(notice: () => void): void {
    queueMicrotask(() => {
      if (!this.closed) notice();
    });
  }

  private assertOpen(): void {
    if (this.closed) throw new ClosedError('the wake source is closed: make another one with broker.watch()');
  }
}
