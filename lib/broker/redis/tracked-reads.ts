import type { Clock } from '../../clock.js';
import { ClosedError, WakeUpRefusedError } from '../../errors.js';
import { isReply, toBrokerError } from './connection/broker-error.js';
import { masterOf, refreshSlots } from './connection/cluster-nodes.js';
import type { RedisConnections } from './connection/connections.js';
import { type Command, TrackingConnection, type TrackingHooks } from './connection/tracking-connection.js';

/** How long CLIENT TRACKING is not tried again after Redis has refused it. */
const REFUSAL_HOLD_MS = 60_000;

/** The name of the only node outside a cluster. */
const SERVER = '';

/** Commands that read keys of one slot, that of `key`. */
export interface TrackedRead {
  readonly key: string;
  readonly commands: readonly Command[];
}

export interface TrackedHooks {
  /** These keys of the node have changed since they were read; `undefined`: all of them. */
  onChanged(node: string, keys: readonly string[] | undefined): void;
  /** The node gives no notice any more of what was read before. Which nodes there are is found out meanwhile. */
  onLost(node: string): void;
}

/**
 * Reads that arm one-shot notices (`CLIENT TRACKING`) of the next change of what they read, by any client. One pair of
 * connections per Redis node, opened at its first read, and again at the next read after a loss.
 */
export class TrackedReads {
  private readonly nodes = new Map<string, TrackedNode>();
  private refusal: { error: WakeUpRefusedError; until: number } | undefined;
  private closed = false;

  /** @param asBuffers whether replies are bytes */
  constructor(
    private readonly connections: RedisConnections,
    private readonly hooks: TrackedHooks,
    private readonly clock: Clock,
    private readonly asBuffers = false,
  ) {}

  /**
   * All reads in one batch per node; the replies in order.
   *
   * @param beforeSend called per node, right before it gets its reads (their indexes): a notice may overtake the reply
   * @throws WakeUpRefusedError (at once, for a minute after each refusal), BrokerUnavailableError, ClosedError
   */
  async read(
    reads: readonly TrackedRead[],
    beforeSend: (node: string, indexes: readonly number[]) => void,
  ): Promise<unknown[][]> {
    this.checkUsable();
    try {
      return await this.readByNode(reads, beforeSend);
    } catch (error) {
      if (!isRedirection(error)) return this.fail(error);
      await refreshSlots(await this.connections.cluster());
      return await this.readByNode(reads, beforeSend).catch((again: unknown) => this.fail(again));
    }
  }

  /** Reads anew which node has which slots. */
  learnNodes(): void {
    if (!this.connections.isCluster) return;
    this.connections
      .cluster()
      .then(refreshSlots)
      .catch(() => undefined);
  }

  async close(): Promise<void> {
    this.closed = true;
    const nodes = [...this.nodes.values()];
    this.nodes.clear();
    await Promise.all(nodes.map((node) => node.close()));
  }

  private async readByNode(
    reads: readonly TrackedRead[],
    beforeSend: (node: string, indexes: readonly number[]) => void,
  ): Promise<unknown[][]> {
    const replies = new Array<unknown[]>(reads.length);
    const readNode = async ([name, indexes]: [string, number[]]): Promise<void> => {
      const connection = await this.node(name).connect();
      beforeSend(name, indexes);
      const commands = indexes.flatMap((index) => reads[index]!.commands);
      const results = await connection.read(commands, this.asBuffers);
      let next = 0;
      for (const index of indexes) replies[index] = results.slice(next, (next += reads[index]!.commands.length));
    };
    await Promise.all([...(await this.groupByNode(reads))].map(readNode));
    return replies;
  }

  private async groupByNode(reads: readonly TrackedRead[]): Promise<Map<string, number[]>> {
    if (!this.connections.isCluster) return new Map([[SERVER, reads.map((_, index) => index)]]);
    const cluster = await this.connections.cluster();
    const groups = new Map<string, number[]>();
    for (const [index, { key }] of reads.entries()) {
      const node = masterOf(cluster, key);
      const group = groups.get(node);
      if (group) group.push(index);
      else groups.set(node, [index]);
    }
    return groups;
  }

  private node(name: string): TrackedNode {
    this.checkUsable();
    const known = this.nodes.get(name);
    if (known) return known;
    const target = name === SERVER ? undefined : name;
    const node = new TrackedNode(
      (hooks) => TrackingConnection.open((purpose, onGone) => this.connections.open(purpose, onGone, target), hooks),
      { onChanged: (keys) => this.hooks.onChanged(name, keys), onLost: () => this.hooks.onLost(name) },
    );
    this.nodes.set(name, node);
    return node;
  }

  private checkUsable(): void {
    if (this.closed) throw new ClosedError('the wake-up source is closed');
    if (this.refusal && this.clock.now() < this.refusal.until) throw this.refusal.error;
  }

  private fail(error: unknown): never {
    if (error instanceof WakeUpRefusedError) this.refusal = { error, until: this.clock.now() + REFUSAL_HOLD_MS };
    else this.learnNodes(); // a node of our table may be gone
    throw toBrokerError(error, 'CLIENT TRACKING');
  }
}

/** The connections to one node, made when they are needed. */
class TrackedNode {
  private connection: Promise<TrackingConnection> | undefined;
  private opened: TrackingConnection | undefined;

  constructor(
    private readonly open: (hooks: TrackingHooks) => Promise<TrackingConnection>,
    private readonly hooks: TrackingHooks,
  ) {}

  connect(): Promise<TrackingConnection> {
    if (this.connection) return this.connection;
    const opening = this.open({
      onChanged: (keys) => this.hooks.onChanged(keys),
      onLost: (error) => {
        this.connection = undefined;
        this.opened = undefined;
        this.hooks.onLost(error);
      },
    });
    this.connection = opening;
    opening.then(
      (connection) => (this.opened = connection),
      () => (this.connection = undefined),
    );
    return opening;
  }

  /** Does not wait for a connection that is being opened; that one closes when it is open. */
  async close(): Promise<void> {
    this.connection?.then((late) => late.close()).catch(() => undefined);
    await this.opened?.close();
  }
}

const isRedirection = (error: unknown): boolean => isReply(error) && /^(MOVED|ASK) /.test((error as Error).message);
