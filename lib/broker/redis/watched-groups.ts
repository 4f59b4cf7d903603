import { WakeUpRefusedError } from '../../errors.js';
import type { ClaimReply, GroupsWatch, PolicyOf } from '../groups.js';
import { masterOf } from './connection/cluster-nodes.js';
import type { RedisConnections } from './connection/connections.js';
import { TrackingConnection } from './connection/tracking-connection.js';
import { GroupIndex, type GroupIndexDeps } from './group-index.js';
import { GROUP_SCAN_COUNT } from './group-search.js';

/** Queues of a process whose groups are remembered: two connections each, and Redis compares every key it writes with each prefix. */
const MOST_QUEUES = 16;
/** How long nothing is tried after a failure, a refusal, and where there are too many groups. */
const FAILED_PAUSE_MS = 10_000;
const LONG_PAUSE_MS = 600_000;

/** The queues of one broker whose groups are remembered. */
export type WatchedQueues = Set<WatchedGroups>;

/** What is known while Redis gives notice of changed groups. */
interface Following {
  readonly index: GroupIndex;
  readonly notices: TrackingConnection;
  /** `undefined` outside a cluster. */
  readonly node: string | undefined;
}

/**
 * Remembers when the groups of a queue are due, while Redis gives notice of each that changes (`CLIENT TRACKING` with BCAST), by any
 * client. Where there are few groups, or Redis gives no notice, the caller looks at all of them.
 */
export class WatchedGroups implements GroupsWatch {
  private following: Following | undefined;
  private opening = false;
  private retryAt = 0;
  private closed = false;

  constructor(
    private readonly connections: RedisConnections,
    private readonly deps: GroupIndexDeps,
    private readonly watched: WatchedQueues,
  ) {}

  /** `undefined`: all groups are to be looked at. */
  async claim(policyOf: PolicyOf, limit: number): Promise<ClaimReply | undefined> {
    const { following } = this;
    if (!following) return undefined;
    if (following.node !== (await this.node())) return this.forget();
    try {
      const reply = await following.index.claim(policyOf, limit);
      if (!following.index.isFull || reply.sets.length > 0) return reply;
    } catch (error) {
      this.forget();
      throw error;
    }
    return this.forget(LONG_PAUSE_MS);
  }

  /** A look at all has come to so many groups with a policy. With more than one step looks at, they are remembered from here on. */
  hasSeen(groups: number): void {
    if (groups <= GROUP_SCAN_COUNT || this.following || this.opening || this.closed) return;
    if (this.deps.clock.elapsed() < this.retryAt || this.watched.size >= MOST_QUEUES) return;
    this.opening = true;
    this.watched.add(this);
    void this.follow().finally(() => (this.opening = false));
  }

  async close(): Promise<void> {
    this.closed = true;
    const { following } = this;
    this.forget();
    await following?.notices.close();
  }

  /** Never rejects. */
  private async follow(): Promise<void> {
    try {
      const index = new GroupIndex(this.deps);
      const node = await this.node();
      const lose = (): void => {
        if (this.following?.index === index) this.forget();
      };
      const notices = await TrackingConnection.open(
        (purpose, onGone) => this.connections.open(purpose, onGone, node),
        { onChanged: (keys) => (keys ? keys.forEach((key) => index.hear(key)) : lose()), onLost: lose },
        this.deps.keys.groupPrefix,
      );
      if (this.closed) return await notices.close();
      this.following = { index, notices, node };
    } catch (error) {
      this.forget(error instanceof WakeUpRefusedError ? LONG_PAUSE_MS : FAILED_PAUSE_MS);
    }
  }

  /** What is known may be wrong by now. */
  private forget(pause = 0): undefined {
    this.retryAt = this.deps.clock.elapsed() + pause;
    this.watched.delete(this);
    const { following } = this;
    this.following = undefined;
    void following?.notices.close();
  }

  private async node(): Promise<string | undefined> {
    if (!this.connections.isCluster) return undefined;
    return masterOf(await this.connections.cluster(), this.deps.keys.groups);
  }
}
