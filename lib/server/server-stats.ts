import type { LoopStats } from '../loop.js';
import type { Wakeups } from './fetching/waker.js';

/** How a server stands at one moment. Read by metrics and health checks; costs nothing but the reading. */
export interface ServerStats {
  /** `new`, `active`, `stopped` (takes nothing any more, lets end what runs) or `closed`. */
  readonly status: 'new' | 'active' | 'stopped' | 'closed';
  /** Handlers that may run at the same time, and for how many of them there is room now. */
  readonly concurrency: number;
  readonly free: number;
  /** Handlers that have not settled. */
  readonly active: number;
  /** By queue: tasks taken and not yet settled, those included whose handlers go on after they were given up. */
  readonly inFlight: ReadonlyMap<string, number>;
  readonly wakeups: Wakeups;
  /** The loops beside the fetching of tasks. */
  readonly loops: readonly LoopStats[];
}
