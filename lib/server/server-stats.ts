import type { LoopStats } from '../loop.js';
import type { Core } from './core.js';
import type { Wakeups } from './fetching/waker.js';
import type { LoopDelay } from './loops/loop-watch.js';
import type { ServerStatus } from './server-status.js';

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
  /** Its seat in its crew, from 1; 0: it stands by; `undefined`: not known, so it does all itself. */
  readonly seat: number | undefined;
  /** How late the event loop was in the last half minute to minute. */
  readonly loopDelay: LoopDelay;
  /** The loops beside the tasks. */
  readonly loops: readonly LoopStats[];
}

export function statsOf({
  status,
  processor,
  executor,
  queues,
  waker,
  loops,
  loopWatch,
  seat: { seat },
}: Core): ServerStats {
  const { concurrency, free } = processor;
  const inFlight = new Map<string, number>();
  for (const { name, held, lingering } of queues.all()) inFlight.set(name, held.size + lingering.size);
  return {
    status,
    concurrency,
    free,
    active: executor.running,
    inFlight,
    wakeups: waker.wakeups,
    seat,
    loopDelay: loopWatch.delay,
    loops: loops.stats(),
  };
}
