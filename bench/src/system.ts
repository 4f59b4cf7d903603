/** One measured queue system. It runs in its own process on the Redis of the run. */
export interface System {
  /** Adds one task and resolves when Redis has it. */
  enqueue(payload: Payload): Promise<unknown>;
  /** Adds many tasks in the way that the system offers for that. */
  enqueueMany(payloads: readonly Payload[]): Promise<unknown>;
  /** Starts to run tasks: calls `handle` for each task. */
  work(concurrency: number, handle: Handle): Promise<void>;
  /** How many tasks are not yet acknowledged in Redis: waiting or active. */
  unfinished(): Promise<number>;
  close(): Promise<void>;
}

export interface Payload {
  readonly n: number;
  readonly text: string;
}

/** Returns nothing (a no-op) or a promise (work that takes time). */
export type Handle = (payload: Payload) => Promise<void> | void;

/** About 100 bytes of JSON. */
export const makePayload = (n: number): Payload => ({ n, text: 'x'.repeat(82 - String(n).length) });
