import { type Clock, SystemClock } from '../../clock.js';
import { ClosedError, WakeUpRefusedError } from '../../errors.js';
import type { Keyspace } from '../../wire/keys.js';
import type { WakeListener, WakeSource } from '../broker.js';
import { FairQueues } from '../fair-queues.js';
import { readScore } from './scripts/arguments.js';
import { isReply, toBrokerError } from './connection/broker-error.js';
import { masterOf, refreshSlots } from './connection/cluster-nodes.js';
import type { RedisConnections } from './connection/connections.js';
import { NodeNotices, type NoticeKind } from './node-notices.js';
import { type Command, TrackingConnection } from './connection/tracking-connection.js';

/** How long CLIENT TRACKING is not tried again after Redis has refused it. */
const REFUSAL_HOLD_MS = 60_000;

/** The name of the only node outside a cluster. */
const SERVER = '';

/**
 * Wake-ups by one-shot `CLIENT TRACKING`, for changes by any client. One pair of connections per
 * Redis node with armed queues, opened at the first arming, and again at the next arming after a
 * loss.
 *
 * A notice may arrive before its arming has resolved.
 */
export class RedisWakeSource implements WakeSource {
  private readonly nodes = new Map<string, NodeNotices>();
  private refusal: { error: WakeUpRefusedError; until: number } | undefined;
  private closed = false;

  constructor(
    private readonly connections: RedisConnections,
    private readonly keyspace: Keyspace,
    private readonly listener: WakeListener,
    private readonly clock: Clock = new SystemClock(),
    private readonly fairQueues = new FairQueues(),
  ) {}

  /** @throws WakeUpRefusedError (at once, for a minute after each refusal), BrokerUnavailableError, ClosedError */
  async armPending(queues: readonly string[]): Promise<Map<string, number>> {
    const replies = await this.arm('pending', queues, (queue) => {
      const { pending, paused, fairRing } = this.keyspace.queue(queue);
      const reads: Command[] = [
        ['LLEN', pending],
        ['EXISTS', paused],
      ];
      if (this.fairQueues.has(queue)) reads.push(['ZCARD', fairRing]);
      return reads;
    });
    const backlog = (queue: string): number => {
      const [pending, paused, keys = 0] = replies.get(queue) ?? [];
      return paused === 0 ? Number(pending) + Number(keys) : 0;
    };
    return new Map(queues.map((queue) => [queue, backlog(queue)]));
  }

  /** @throws as {@link armPending} */
  async armDelayed(queues: readonly string[]): Promise<number | undefined> {
    const replies = await this.arm('delayed', queues, (queue) => {
      const { scheduled, retry } = this.keyspace.queue(queue);
      return [scheduled, retry].map((key): Command => ['ZRANGE', key, 0, 0, 'WITHSCORES']);
    });
    const scores = [...replies.values()].flatMap((sets) =>
      sets.flatMap((set) => (set as string[]).slice(1).map(readScore)),
    );
    return scores.length > 0 ? Math.min(...scores) : undefined;
  }

  /** @throws as {@link armPending} */
  async armPlaces(): Promise<string[]> {
    this.checkUsable();
    try {
      const { isCluster } = this.connections;
      const node = isCluster ? masterOf(await this.connections.cluster(), this.keyspace.linked) : SERVER;
      return (await this.node(node).armPlaces()) as string[];
    } catch (error) {
      return this.fail(error);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    const nodes = [...this.nodes.values()];
    this.nodes.clear();
    await Promise.all(nodes.map((node) => node.close()));
  }

  /** All reads in one batch; the replies by queue. */
  private async arm(
    kind: NoticeKind,
    queues: readonly string[],
    commandsOf: (queue: string) => Command[],
  ): Promise<Map<string, unknown[]>> {
    this.checkUsable();
    try {
      return await this.armByNode(kind, queues, commandsOf);
    } catch (error) {
      if (isRedirection(error)) {
        await refreshSlots(await this.connections.cluster());
        return await this.armByNode(kind, queues, commandsOf).catch((again: unknown) => this.fail(again));
      }
      return this.fail(error);
    }
  }

  private async armByNode(
    kind: NoticeKind,
    queues: readonly string[],
    commandsOf: (queue: string) => Command[],
  ): Promise<Map<string, unknown[]>> {
    const replies = new Map<string, unknown[]>();
    const armNode = async ([node, members]: [string, string[]]): Promise<void> => {
      const commands = members.map(commandsOf);
      const results = await this.node(node).arm(kind, members, commands.flat());
      let next = 0;
      members.forEach((queue, index) => replies.set(queue, results.slice(next, (next += commands[index]!.length))));
    };
    await Promise.all([...(await this.groupByNode(queues))].map(armNode));
    return replies;
  }

  private async groupByNode(queues: readonly string[]): Promise<Map<string, string[]>> {
    if (!this.connections.isCluster) return new Map([[SERVER, [...queues]]]);
    const cluster = await this.connections.cluster();
    const groups = new Map<string, string[]>();
    for (const queue of queues) {
      const node = masterOf(cluster, this.keyspace.queue(queue).pending);
      groups.set(node, [...(groups.get(node) ?? []), queue]);
    }
    return groups;
  }

  private node(name: string): NodeNotices {
    this.checkUsable();
    const known = this.nodes.get(name);
    if (known) return known;
    const target = name === SERVER ? undefined : name;
    const node = new NodeNotices(
      (hooks) => TrackingConnection.open((purpose, onGone) => this.connections.open(purpose, onGone, target), hooks),
      this.keyspace,
      this.listener,
      () => this.lose(),
    );
    this.nodes.set(name, node);
    return node;
  }

  /** The contract has one loss for all nodes: reported once, however many connections fail. */
  private lose(): void {
    for (const node of this.nodes.values()) node.disarm();
    if (this.connections.isCluster) this.learnNodes();
    this.listener.onLost();
  }

  private learnNodes(): void {
    this.connections
      .cluster()
      .then(refreshSlots)
      .catch(() => undefined);
  }

  private checkUsable(): void {
    if (this.closed) throw new ClosedError('the wake-up source is closed');
    if (this.refusal && this.clock.now() < this.refusal.until) throw this.refusal.error;
  }

  private fail(error: unknown): never {
    if (error instanceof WakeUpRefusedError) this.refusal = { error, until: this.clock.now() + REFUSAL_HOLD_MS };
    else if (this.connections.isCluster) this.learnNodes(); // a node of our table may be gone
    throw toBrokerError(error, 'CLIENT TRACKING');
  }
}

const isRedirection = (error: unknown): boolean => isReply(error) && /^(MOVED|ASK) /.test((error as Error).message);
