import { nextTick } from 'node:process';
import { setImmediate } from 'node:timers'; // the real one, also where a test fakes the global
import type { EnqueueRequest } from '../broker/broker.js';
import type { EnqueueReply, Producing } from '../enqueue/producing.js';
import { Requests, type CallLimits } from '../enqueue/requests.js';

interface Waiter {
  resolve(reply: EnqueueReply): void;
  reject(error: unknown): void;
}

/**
 * Sends single enqueues that come close together as one call per queue.
 *
 * While no call is under way, enqueues are collected until `nextTick`, which runs after all promise
 * callbacks that are ready: a single one is not delayed, and loops that one reply resumes share the
 * next call (a microtask would run between them). While a call is under way, they are collected
 * until `setImmediate`: the requests of a busy web server arrive in separate turns of the event
 * loop, and sending their tasks one by one costs three times the CPU.
 */
export class Coalescer {
  private readonly open = new Map<string, Requests<Waiter>>();
  private readonly sending = new Set<Promise<void>>();

  constructor(
    private readonly broker: Producing,
    private readonly limits: CallLimits,
  ) {}

  add(queue: string, request: EnqueueRequest): Promise<EnqueueReply> {
    return new Promise((resolve, reject) => {
      let batch = this.open.get(queue);
      if (batch && !batch.hasRoomFor(request)) {
        this.flush(queue);
        batch = undefined;
      }
      if (!batch) {
        if (this.open.size === 0) this.scheduleFlush();
        this.open.set(queue, (batch = new Requests(this.limits)));
      }
      batch.add(request, { resolve, reject });
    });
  }

  /** Sends what is collected for a queue at once. */
  flush(queue: string): void {
    const batch = this.open.get(queue);
    if (!batch) return;
    this.open.delete(queue);
    const sent = this.send(queue, batch);
    this.sending.add(sent);
    void sent.then(() => this.sending.delete(sent));
  }

  /** Sends everything, and resolves when every call has succeeded or failed. */
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

  /** Never rejects: the error of a call goes to the tasks in it. */
  private async send(queue: string, { requests, owners }: Requests<Waiter>): Promise<void> {
    try {
      const statuses = await this.broker.enqueue(queue, requests);
      for (let index = 0; index < owners.length; index++) owners[index]!.resolve(statuses[index]!);
    } catch (error) {
      for (const owner of owners) owner.reject(error);
    }
  }
}
