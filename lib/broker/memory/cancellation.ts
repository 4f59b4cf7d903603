import {
  type ActedCancellation,
  CANCELLATION_SECONDS,
  type Cancellation,
  type CancellationRole,
  MAX_CANCELLATIONS,
  type RecordedCancellation,
} from '../cancellation.js';
import type { MemoryState } from './memory-state.js';
import { wellFormed } from './queue-store.js';

export class MemoryCancellation implements CancellationRole {
  private readonly records = new Map<string, RecordedCancellation>();
  private readonly listeners = new Set<(id: string) => void>();

  constructor(private readonly state: MemoryState) {}

  async recordCancellation(cancellation: Cancellation): Promise<void> {
    this.state.assertOpen();
    const { now } = this.state;
    const id = wellFormed(cancellation.id);
    const reason = cancellation.reason === undefined ? undefined : wellFormed(cancellation.reason);
    this.records.delete(id);
    this.records.set(id, { ...cancellation, id, reason, acted: [] });
    for (const [known, { at }] of this.records) {
      if (!isOver(at, now) && this.records.size <= MAX_CANCELLATIONS) break;
      this.records.delete(known);
    }
  }

  async findCancellations(ids: readonly string[]): Promise<RecordedCancellation[]> {
    this.state.assertOpen();
    const { now } = this.state;
    return ids
      .flatMap((id) => this.records.get(wellFormed(id)) ?? [])
      .filter(({ at }) => !isOver(at, now))
      .map((record) => ({ ...record }));
  }

  async noteCancelled(acted: readonly ActedCancellation[]): Promise<void> {
    this.state.assertOpen();
    for (const { id, at, queue } of acted) {
      const record = this.records.get(wellFormed(id));
      if (record?.at === at) this.records.set(record.id, { ...record, acted: [...record.acted, wellFormed(queue)] });
    }
  }

  async publishCancellation(id: string): Promise<void> {
    this.state.assertOpen();
    for (const listener of Array.from(this.listeners)) listener(wellFormed(id));
  }

  async subscribeCancellations(onCancel: (id: string) => void): Promise<() => Promise<void>> {
    this.state.assertOpen();
    const own = (id: string): void => onCancel(id);
    this.listeners.add(own);
    return async () => void this.listeners.delete(own);
  }

  /** Forgets what is recorded. */
  clear(): void {
    this.records.clear();
  }

  /** Ends every subscription. */
  end(): void {
    this.listeners.clear();
  }
}

/** Times are milliseconds since the epoch. */
const isOver = (at: number, now: number): boolean => at < now - CANCELLATION_SECONDS * 1000;
