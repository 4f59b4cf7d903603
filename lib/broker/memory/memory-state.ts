import type { Clock } from '../../clock.js';
import { ClosedError } from '../../errors.js';
import { QueueStore, wellFormed } from './queue-store.js';

/** Notified of changes of queues. */
export interface ChangeListener {
  notePending(queue: string): void;
  noteDelayed(queue: string): void;
}

/** What the roles of one memory broker share: its queues, its clock, and whether it is closed. */
export class MemoryState {
  readonly stores = new Map<string, QueueStore>();
  readonly listeners = new Set<ChangeListener>();
  closed = false;
  private arrivals = 0;

  constructor(readonly clock: Clock) {}

  /** Milliseconds since the epoch. */
  get now(): number {
    return this.clock.now();
  }

  /** The data of a queue, which is created when it is missing. */
  store(queue: string): QueueStore {
    const name = wellFormed(queue);
    let store = this.stores.get(name);
    if (!store) this.stores.set(name, (store = new QueueStore(() => ++this.arrivals)));
    return store;
  }

  /** Does the work in one step, as a script does, and reports what it changed. */
  change<T>(queue: string, work: (store: QueueStore, now: number) => T): T {
    this.assertOpen();
    const store = this.store(queue);
    const { pendingChanges, delayedChanges } = store;
    const result = work(store, this.now);
    if (store.pendingChanges !== pendingChanges)
      for (const listener of this.listeners) listener.notePending(wellFormed(queue));
    if (store.delayedChanges !== delayedChanges)
      for (const listener of this.listeners) listener.noteDelayed(wellFormed(queue));
    return result;
  }

  assertOpen(): void {
    if (this.closed) throw new ClosedError('the in-memory broker is closed: nothing can be done with it any more');
  }
}
