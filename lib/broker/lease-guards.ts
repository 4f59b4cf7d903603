import type { Lease } from './consumer.js';

/** Keeps leases while the event loop of this process stands still. */
export interface LeaseGuard {
  /** From here on the lease is kept, until `release` or the deadline (milliseconds since the epoch). Costs a note in memory. */
  hold(lease: Lease, deadline: number): void;
  release(lease: Lease): void;
  /** The event loop goes on. Called at least every second from the first `hold` to `close`. */
  beat(): void;
  close(): Promise<void>;
}

export interface LeaseGuardOptions {
  /** How many leases are held at a time, about. */
  readonly capacity: number;
  /** Called once when leases cannot be kept: why, and what to do. */
  readonly onUnavailable: (reason: string) => void;
}

export interface LeaseGuardsRole {
  /** `undefined`: nobody else can take a task. */
  open(options: LeaseGuardOptions): LeaseGuard | undefined;
}
