import { nextTick } from 'node:process';
import { setImmediate } from 'node:timers'; // the real one, also where a test fakes the global
import type { EnqueueRequest, EnqueueStatus, ProducerBroker } from '../broker/broker.js';
import { Batch, type BatchLimits } from './batch.js';

interface Waiter {
  resolve(status: EnqueueStatus): void;
  reject(error: unknown): void;
}

/**
 * Sends single enqueues that come close together as one call per queue.
 *
 * While no call is under way they are collected until `nextTick`, which Node calls after every promise callback that is
 * ready: a lone one waits for nothing, and loops that await their enqueues, resumed by one reply, meet in the next call (a
 * microtask would run between them). While a call is under way they are collected until the event loop has served
 * everything that is ready (`setImmediate`): requests of a busy web server arrive in turns of the loop of their own, and
 * sent one by one they cost three times the CPU.
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
        if (this.open.size === 0) this.scheduleFlush();
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

  private scheduleFlush(): void {
    if (this.sending.size === 0) nextTick(this.flushAll);
    else setImmediate(this.flushAll);
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
