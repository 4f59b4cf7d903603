import {
  type ActedCancellation,
  CANCELLATION_SECONDS,
  type Cancellation,
  MOST_CANCELLATIONS,
  type RecordedCancellation,
} from '../cancellation.js';
import { wellFormed } from './queue-store.js';

/** What is to be cancelled, and who listens for it. Times are milliseconds since the epoch. */
export class MemoryCancellations {
  private readonly records = new Map<string, RecordedCancellation>();
  private readonly listeners = new Set<(id: string) => void>();

  record(cancellation: Cancellation, now: number): void {
    const id = wellFormed(cancellation.id);
    const reason = cancellation.reason === undefined ? undefined : wellFormed(cancellation.reason);
    this.records.delete(id);
    this.records.set(id, { ...cancellation, id, reason, acted: [] });
    for (const [known, { at }] of this.records) {
      if (!isOver(at, now) && this.records.size <= MOST_CANCELLATIONS) break;
      this.records.delete(known);
    }
  }

  find(ids: readonly string[], now: number): RecordedCancellation[] {
    return ids
      .flatMap((id) => this.records.get(wellFormed(id)) ?? [])
      .filter(({ at }) => !isOver(at, now))
      .map((record) => ({ ...record }));
  }

  note(acted: readonly ActedCancellation[]): void {
    for (const { id, at, queue } of acted) {
      const record = this.records.get(wellFormed(id));
      if (record?.at === at) this.records.set(record.id, { ...record, acted: [...record.acted, wellFormed(queue)] });
    }
  }

  publish(id: string): void {
    for (const listener of [...this.listeners]) listener(wellFormed(id));
  }

  /** Answers the function that ends the subscription. */
  subscribe(listener: (id: string) => void): () => void {
    const own = (id: string): void => listener(id);
    this.listeners.add(own);
    return () => void this.listeners.delete(own);
  }

  /** Forgets what is recorded. */
  clear(): void {
    this.records.clear();
  }

  end(): void {
    this.listeners.clear();
  }
}

const isOver = (at: number, now: number): boolean => at < now - CANCELLATION_SECONDS * 1000;
