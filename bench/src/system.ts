/** One queue system under measurement, running in a process of its own against the Redis of the run. */
export interface System {
  /** Adds one task and resolves when Redis has it. */
  enqueue(payload: Payload): Promise<unknown>;
  /** Adds many in whatever way the system offers for that. */
  enqueueMany(payloads: readonly Payload[]): Promise<unknown>;
  /** Starts working; `handle` is called for each task. */
  work(concurrency: number, handle: Handle): Promise<void>;
  /** Tasks not yet acknowledged in Redis: waiting or active. */
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
