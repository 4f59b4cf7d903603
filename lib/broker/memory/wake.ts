import { ClosedError } from '../../errors.js';
import type { WakeListener, WakeRole, WakeSource } from '../broker.js';
import type { ChangeListener, MemoryState } from './memory-state.js';
import { wellFormed } from './queue-store.js';

export class MemoryWake implements WakeRole {
  private readonly sources = new Set<MemoryWakeSource>();

  constructor(private readonly state: MemoryState) {}

  watch(listener: WakeListener): WakeSource {
    const source = new MemoryWakeSource(listener, this.state, (ended) => {
      this.sources.delete(ended);
      this.state.listeners.delete(ended);
    });
    if (this.state.closed) {
      source.end();
    } else {
      this.sources.add(source);
      this.state.listeners.add(source);
    }
    return source;
  }

  /** Ends every source. */
  end(): void {
    for (const source of this.sources) {
      source.end();
      this.state.listeners.delete(source);
    }
    this.sources.clear();
  }
}

/**
 * One-shot wake-ups of one server, like CLIENT TRACKING: armed by a read, spent by the next change.
 */
class MemoryWakeSource implements WakeSource, ChangeListener {
  private readonly pending = new Set<string>();
  private readonly delayed = new Set<string>();
  private placesArmed = false;
  private closed = false;

  constructor(
    private readonly listener: WakeListener,
    private readonly state: MemoryState,
    private readonly onClose: (source: MemoryWakeSource) => void,
  ) {}

  async armPending(queues: readonly string[]): Promise<Map<string, number>> {
    this.assertOpen();
    for (const queue of queues) this.pending.add(wellFormed(queue));
    return new Map(queues.map((queue) => [queue, this.state.store(queue).backlog]));
  }

  async armDelayed(queues: readonly string[]): Promise<number | undefined> {
    this.assertOpen();
    for (const queue of queues) this.delayed.add(wellFormed(queue));
    const scores = queues.map((queue) => this.state.store(queue).nextDue ?? Infinity);
    const next = Math.min(...scores);
    return next === Infinity ? undefined : next;
  }

  async armPlaces(): Promise<string[]> {
    this.assertOpen();
    this.placesArmed = true;
    return this.state.placesWithLinks();
  }

  async close(): Promise<void> {
    this.end();
    this.onClose(this);
  }

  /** After this nothing is reported. */
  end(): void {
    this.closed = true;
    this.pending.clear();
    this.delayed.clear();
    this.placesArmed = false;
  }

  /**
   * Calls the listener after the call that made the change, so that it finds the broker between two
   * calls.
   */
  notePending(queue: string): void {
    if (this.pending.delete(queue)) this.notify(() => this.listener.onPending(queue));
  }

  noteDelayed(queue: string): void {
    if (this.delayed.delete(queue)) this.notify(() => this.listener.onDelayed(queue));
  }

  notePlaces(): void {
    if (!this.placesArmed) return;
    this.placesArmed = false;
    this.notify(() => this.listener.onPlaces?.());
  }

  private notify(notice: () => void): void {
    queueMicrotask(() => {
      if (!this.closed) notice();
    });
  }

  private assertOpen(): void {
    if (this.closed) throw new ClosedError('the wake source is closed: make another one with broker.watch()');
  }
}
