import { nextTick } from 'node:process';
import { setImmediate } from 'node:timers'; // the real one, also where a test fakes the global
import type { Flight } from './flight.js';

/** Who waits for the reply to a request. */
export interface Waiter<Reply> {
  resolve(reply: Reply | Promise<Reply>): void;
  reject(error: unknown): void;
}

/** Requests for one queue that are sent together, each with who waits for its reply. */
export interface Collected<Request, Reply> {
  readonly requests: readonly Request[];
  readonly owners: readonly Waiter<Reply>[];
  /** Of all payloads together. */
  readonly bytes: number;
  hasRoomFor(request: Request): boolean;
  /** They are sent without waiting for more. */
  readonly isFull: boolean;
  add(request: Request, owner: Waiter<Reply>): void;
}

/**
 * Sends single requests (tasks to enqueue, runs to start) that come close together as one call per queue.
 *
 * While no call is under way, requests are collected until `nextTick`, which runs after all promise
 * callbacks that are ready: a single one is not delayed, and loops that one reply resumes share the
 * next call (a microtask would run between them). While a call is under way, they are collected
 * until `setImmediate`: the requests of a busy web server arrive in separate turns of the event
 * loop, and sending their tasks one by one costs three times the CPU. A call that is full is sent at
 * once: Redis works on it while this process prepares the next.
 */
export class Coalescer<Request, Reply> {
  private readonly open = new Map<string, Collected<Request, Reply>>();
  private readonly sending = new Set<Promise<void>>();
  /** `flushAll` will run. */
  private isScheduled = false;

  /** @param call returns one reply per request, in order */
  constructor(
    private readonly call: (
      queue: string,
      requests: readonly Request[],
    ) => Promise<readonly (Reply | Promise<Reply>)[]>,
    private readonly collect: () => Collected<Request, Reply>,
    /** Whether requests are collected until the calls under way are over. */
    private readonly oneAtATime = false,
    /** Bounds what is under way; default: nothing does. */
    private readonly flight?: Flight,
  ) {}

  add(queue: string, request: Request): Promise<Reply> {
    return new Promise((resolve, reject) => {
      let batch = this.open.get(queue);
      if (batch && !batch.hasRoomFor(request)) {
        this.flush(queue);
        batch = undefined;
      }
      if (!batch) {
        if (!this.isScheduled) this.scheduleFlush();
        this.open.set(queue, (batch = this.collect()));
      }
      batch.add(request, { resolve, reject });
      if (batch.isFull) this.flush(queue);
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
    this.isScheduled = true;
    if (this.sending.size === 0) nextTick(this.flushAll);
    else if (this.oneAtATime) void Promise.all(this.sending).then(this.flushAll);
    else setImmediate(this.flushAll);
  }

  private readonly flushAll = (): void => {
    this.isScheduled = false;
    for (const queue of this.open.keys()) this.flush(queue);
  };

  /** Never rejects: the error of a call goes to the requests in it. */
  private async send(queue: string, { requests, owners, bytes }: Collected<Request, Reply>): Promise<void> {
    let inside = false;
    try {
      const turn = this.flight?.enter(bytes);
      if (turn) await turn;
      inside = true;
      const replies = await this.call(queue, requests);
      this.flight?.leave(bytes);
      inside = false;
      for (let index = 0; index < owners.length; index++) owners[index]!.resolve(replies[index]!);
    } catch (error) {
      if (inside) this.flight?.leave(bytes, error);
      for (const owner of owners) owner.reject(error);
    }
  }
}
