import type { Clock } from '../../clock.js';
import { ClosedError } from '../../errors.js';
import { Archives } from '../archives.js';
import { FairQueues } from '../fair-queues.js';
import { QueueStore, wellFormed } from './queue-store.js';

/** Notified of changes of queues. */
export interface ChangeListener {
  notePending(queue: string): void;
  noteDelayed(queue: string): void;
  notePlaces(): void;
}

/** What the roles of one memory broker share: its queues, its clock, and whether it is closed. */
export class MemoryState {
  readonly archives = new Archives();
  readonly fairQueues = new FairQueues();
  readonly stores = new Map<string, QueueStore>();
  readonly listeners = new Set<ChangeListener>();
  /** Called with a queue after a step that may have changed its tasks. */
  readonly taskListeners = new Set<(queue: string) => void>();
  closed = false;
  /** Set by the engine of links. */
  placesWithLinks: () => string[] = () => [];
  /** Whether runs or batches live in a queue. Set by the engine of links. */
  keepsMore: (queue: string) => boolean = () => false;
  private arrivals = 0;
  /** The queues that a step changes, and how often each had changed before it. */
  private readonly touched = new Map<string, { readonly pending: number; readonly delayed: number }>();
  private depth = 0;

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
    if (this.fairQueues.has(name)) store.beFair();
    return store;
  }

  /** Does the work in one step, as a script does, and reports what it changed. */
  change<T>(queue: string, work: (store: QueueStore, now: number) => T): T {
    this.assertOpen();
    const store = this.touch(queue);
    this.depth++;
    try {
      return work(store, this.now);
    } finally {
      if (--this.depth === 0) this.report();
    }
  }

  /** The data of another queue that the work of a step changes. */
  touch(queue: string): QueueStore {
    const store = this.store(queue);
    const name = wellFormed(queue);
    if (!this.touched.has(name)) {
      this.touched.set(name, { pending: store.pendingChanges, delayed: store.delayedChanges });
    }
    return store;
  }

  /** Tasks of the queue may have changed. */
  tasksChanged(queue: string): void {
    for (const onTasksChanged of this.taskListeners) onTasksChanged(queue);
  }

  private report(): void {
    for (const [queue, { pending, delayed }] of this.touched) {
      this.tasksChanged(queue);
      const store = this.stores.get(queue);
      if (!store) continue;
      if (store.pendingChanges !== pending) for (const listener of this.listeners) listener.notePending(queue);
      if (store.delayedChanges !== delayed) for (const listener of this.listeners) listener.noteDelayed(queue);
    }
    this.touched.clear();
  }

  assertOpen(): void {
    if (this.closed) throw new ClosedError('the in-memory broker is closed: nothing can be done with it any more');
  }
}
