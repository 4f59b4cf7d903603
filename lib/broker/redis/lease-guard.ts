import { Worker } from 'node:worker_threads';
import { type Clock, SystemClock } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import { type Lease, LEASE_SECONDS } from '../consumer.js';
import type { LeaseGuard, LeaseGuardOptions, LeaseGuardsRole } from '../lease-guards.js';
import type { RedisConnections } from './connection/connections.js';
import { LAYOUT, LeaseBoard } from './lease-board.js';
import type { LeaseScores } from './lease-scores.js';
import { leaseThread, type ThreadData, type ThreadTimes } from './lease-thread.js';
import { scriptSource } from './scripts/script-source.js';

export const LEASE_TIMES: ThreadTimes = {
  periodMs: 1_000,
  silentMs: 5_000,
  // As the lease keeper.
  extendWhenLeftMs: 20_000,
  leaseSeconds: LEASE_SECONDS,
};
/** Bounds of the leases that are kept: 192 bytes each. */
const MIN_CAPACITY = 256;
const MAX_CAPACITY = 16_384;
/** Between two looks where the queues are. */
const LOOK_INTERVAL_MS = 5_000;

/** `keepNames` of bundlers calls it. */
const PROGRAM = `const __name = (named) => named;
const { parentPort, workerData } = require('node:worker_threads');
(${leaseThread.toString()})(parentPort, workerData);`;

export interface LeaseGuardDeps {
  readonly connections: RedisConnections;
  readonly keyspace: Keyspace;
  readonly clock: Clock;
  readonly scores: LeaseScores;
  readonly times: ThreadTimes;
}

/** One guard for all servers of a broker. */
export class RedisLeaseGuards implements LeaseGuardsRole {
  private shared: { readonly guard: RedisLeaseGuard; users: number } | undefined;

  constructor(private readonly deps: LeaseGuardDeps) {}

  open({ capacity, onUnavailable }: LeaseGuardOptions): LeaseGuard {
    this.shared ??= { guard: new RedisLeaseGuard(this.deps, capacity, onUnavailable), users: 0 };
    const { shared } = this;
    const { guard } = shared;
    shared.users += 1;
    let isOpen = true;
    return {
      hold: (lease, deadline) => guard.hold(lease, deadline),
      release: (lease) => guard.release(lease),
      beat: () => guard.beat(),
      close: async () => {
        if (!isOpen) return;
        isOpen = false;
        shared.users -= 1;
        if (shared.users > 0) return;
        if (this.shared === shared) this.shared = undefined;
        await guard.close();
      },
    };
  }
}

interface KnownQueue {
  readonly number: number;
  readonly leaseKey: string;
  /** What the thread knows. */
  address: string;
}

/** Notes leases in memory that it shares with a thread, which it starts with the first one. */
class RedisLeaseGuard implements LeaseGuard {
  private readonly board: LeaseBoard;
  private readonly queues = new Map<string, KnownQueue>();
  private readonly real = new SystemClock();
  private thread: Worker | undefined;
  private failed = false;
  private lookedAt = 0;

  constructor(
    private readonly deps: LeaseGuardDeps,
    capacity: number,
    private readonly onUnavailable: (reason: string) => void,
  ) {
    this.board = new LeaseBoard(Math.min(Math.max(MIN_CAPACITY, 4 * capacity), MAX_CAPACITY));
    deps.scores.board = this.board;
  }

  hold(lease: Lease, deadline: number): void {
    if (this.failed) return;
    if (!this.thread && !this.start()) return;
    const { number } = this.queues.get(lease.queue) ?? this.know(lease.queue);
    this.board.hold(lease, number, deadline);
  }

  release(lease: Lease): void {
    if (this.thread) this.board.release(lease);
  }

  beat(): void {
    if (!this.thread) return;
    const now = this.real.now();
    this.board.beat(this.deps.clock.now() - now);
    if (Math.abs(now - this.lookedAt) < LOOK_INTERVAL_MS) return;
    this.lookedAt = now;
    for (const queue of this.queues.values()) this.tell(queue);
  }

  async close(): Promise<void> {
    this.failed = true;
    if (this.deps.scores.board === this.board) this.deps.scores.board = undefined;
    await this.thread?.terminate();
  }

  private start(): boolean {
    const connection = this.deps.connections.plain();
    if (typeof connection === 'string') return this.giveUp(connection);
    const { text: script } = scriptSource('extendLeases');
    const workerData: ThreadData = {
      memory: this.board.memory,
      layout: LAYOUT,
      connection,
      script,
      times: this.deps.times,
    };
    this.board.beat(this.deps.clock.now() - this.real.now());
    try {
      const thread = new Worker(PROGRAM, { eval: true, workerData, execArgv: [], name: 'nestjs-asynq leases' });
      thread.unref();
      thread.on('error', (error) => this.giveUp(error.message));
      this.thread = thread;
      return true;
    } catch (error) {
      return this.giveUp((error as Error).message);
    }
  }

  private giveUp(reason: string): false {
    if (!this.failed) this.onUnavailable(reason);
    this.failed = true;
    return false;
  }

  private know(name: string): KnownQueue {
    const leaseKey = this.deps.keyspace.queue(name).lease;
    const queue = { number: this.queues.size, leaseKey, address: '' };
    this.queues.set(name, queue);
    this.tell(queue);
    return queue;
  }

  private tell(queue: KnownQueue): void {
    const address = this.deps.connections.addressOf(queue.leaseKey);
    const text = JSON.stringify(address);
    if (!address || text === queue.address) return;
    queue.address = text;
    this.thread?.postMessage({ number: queue.number, leaseKey: queue.leaseKey, address });
  }
}
