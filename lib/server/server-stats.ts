import type { LoopStats } from '../loop.js';
import type { Wakeups } from './fetching/waker.js';

/** `stopped`: claims nothing any more; what runs goes on. */
export type ServerStatus = 'new' | 'active' | 'stopped' | 'closed';

/** A server at one moment, for metrics and health checks. Costs nothing but the reading. */
export interface ServerStats {
  readonly status: ServerStatus;
  /** Handlers that may run at the same time. */
  readonly concurrency: number;
  /** For how many of them there is room now. */
  readonly free: number;
  /** Handlers that have not settled. */
  readonly active: number;
  /** By queue: tasks claimed and not yet settled, and those given up whose handlers still run. */
  readonly inFlight: ReadonlyMap<string, number>;
  readonly wakeups: Wakeups;
  /** The loops beside the tasks. */
  readonly loops: readonly LoopStats[];
}
