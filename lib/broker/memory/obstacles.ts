import type { StartLimit } from '../limiting.js';
import {
  type HeldTokens,
  MAX_COUNTED_AHEAD,
  MAX_HOLDERS,
  type ObservedServer,
  type ObstaclesRole,
  servedBy,
  type StartsLeft,
  type TaskPosition,
} from '../obstacles.js';
import type { MemoryLimiting } from './limiting.js';
import type { MemoryMonitoring } from './monitoring.js';
import type { MemoryState } from './memory-state.js';
import { type QueueStore, wellFormed } from './queue-store.js';
import type { Starts } from './starts.js';

export class MemoryObstacles implements ObstaclesRole {
  constructor(
    private readonly state: MemoryState,
    private readonly monitoring: MemoryMonitoring,
    private readonly limiting: MemoryLimiting,
  ) {}

  async position(queue: string, id: string): Promise<TaskPosition> {
    return this.state.change(queue, (store) => positionOf(store, wellFormed(id)));
  }

  async observeServers(): Promise<ObservedServer[]> {
    this.state.assertOpen();
    const { now } = this.state;
    return this.monitoring.living(now).map(({ info, workers }) => {
      return { info, workers, profile: this.monitoring.profileOf(info, now), clockAhead: 0 };
    });
  }

  async servedQueues(): Promise<ReadonlySet<string>> {
    return servedBy((await this.observeServers()).map(({ info }) => info));
  }

  async heldTokens(scope: string): Promise<HeldTokens> {
    this.state.assertOpen();
    const held = this.limiting.held(scope);
    return { count: held.length, holders: held.slice(0, MAX_HOLDERS) };
  }

  async startsLeft(scope: string, limit: StartLimit): Promise<StartsLeft> {
    this.state.assertOpen();
    return leftOf(this.limiting.starts(scope, limit.window), limit, this.state.now);
  }

  async queueStartsLeft(queue: string, limit: StartLimit): Promise<StartsLeft> {
    return this.state.change(queue, (store, now) => leftOf(store.starts(limit.window), limit, now));
  }
}

function leftOf(starts: Starts, { max }: StartLimit, now: number): StartsLeft {
  const left = Math.max(0, max - starts.count(now));
  return { left, moreIn: left === 0 ? starts.untilFewer(now) : 0 };
}

function positionOf(store: QueueStore, id: string): TaskPosition {
  return {
    paused: store.pausedAt !== undefined,
    pending: store.pending.size,
    active: store.lease.size,
    ahead: aheadOf(store, id),
    leaseEnd: store.lease.score(id),
    waitlist: waitlistOf(store, id),
  };
}

function aheadOf({ pending }: QueueStore, id: string): number | undefined {
  if (!pending.has(id)) return undefined;
  let ahead = 0;
  for (const other of pending) {
    if (other === id) return ahead;
    if (++ahead === MAX_COUNTED_AHEAD) return undefined;
  }
  return undefined;
}

function waitlistOf(store: QueueStore, id: string): TaskPosition['waitlist'] {
  const name = store.held.score(id) === undefined ? undefined : store.tasks.get(id)?.waits?.waitlist;
  if (name === undefined) return undefined;
  let ahead = 0;
  for (const other of store.waitlist(name)) {
    if (other.id === id) break;
    ahead++;
  }
  return { name, ahead };
}
