import { nextTick } from 'node:process';
import type { EnqueueRequest, EnqueueStatus, ProducerBroker } from '../broker/broker.js';
import { Batch, type BatchLimits } from './batch.js';

interface Waiter {
  resolve(status: EnqueueStatus): void;
  reject(error: unknown): void;
}

/**
 * Sends the single enqueues of one tick as one call per queue. A lone one goes out in the same tick, so it waits for nothing.
 *
 * The flush runs in `process.nextTick`, which Node calls after every promise callback that is ready: loops that
 * await their enqueues are resumed by one reply and meet in the next call. A microtask would run between them.
 */
export class Coalescer {
  private readonly open = new Map<string, Batch<Waiter>>();
  private readonly sending = new Set<Promise<void>>();

  constructor(
    private readonly broker: ProducerBroker,
    private readonly limits: BatchLimits,
  ) {}

  add(queue: string, request: EnqueueRequest): Promise<EnqueueStatus> {
    return new Promise((resolve, reject) => {
      let batch = this.open.get(queue);
      if (batch && !batch.hasRoomFor(request)) {
        this.flush(queue);
        batch = undefined;
      }
      if (!batch) {
        if (this.open.size === 0) nextTick(this.flushAll);
        this.open.set(queue, (batch = new Batch(this.limits)));
      }
      batch.add(request, { resolve, reject });
    });
  }

  /** Sends what has been collected for a queue now. */
  flush(queue: string): void {
    const batch = this.open.get(queue);
    if (!batch) return;
    this.open.delete(queue);
    const sent = this.send(queue, batch);
    this.sending.add(sent);
    void sent.then(() => this.sending.delete(sent));
  }

  /** Sends everything, and resolves when every call has been answered, well or badly. */
  async close(): Promise<void> {
    this.flushAll();
    await Promise.all(this.sending);
  }

  private readonly flushAll = (): void => {
    for (const queue of this.open.keys()) this.flush(queue);
  };

  /** Never rejects: the error of a call belongs to the tasks it carried. */
  private async send(queue: string, { requests, owners }: Batch<Waiter>): Promise<void> {
    try {
      const statuses = await this.broker.enqueue(queue, requests);
      for (let index = 0; index < owners.length; index++) owners[index]!.resolve(statuses[index]!);
    } catch (error) {
      for (const owner of owners) owner.reject(error);
    }
  }
}
