import type { Cluster, Redis } from 'ioredis';
import { type Clock, SystemClock } from '../../../clock.js';
import { BrokerUnavailableError, ClosedError } from '../../../errors.js';
import { isTransient, toBrokerError } from './broker-error.js';
import { ClientFactory, type RedisClient } from './client-factory.js';
import { reconnectDelay } from './client-settings.js';
import { type ConnectionInput, planConnection } from './connection-options.js';
import { FailoverWatch, isConnectedTo, type MasterAddress } from './failover-watch.js';
import { EphemeralConnection } from './ephemeral-connection.js';
import type { Address, PlainConnection } from './plain-connection.js';
import { slotOf } from './slot.js';
import { PersistentConnection, disconnect } from './persistent-connection.js';

/**
 * `consume` claims, settles and extends leases; `produce` enqueues; `acknowledge` enqueues and waits for replicas; `monitor` is for
 * everything else. Each has a connection of its own, so that a bulk of one kind does not delay the others.
 */
export type ConnectionPurpose = 'produce' | 'acknowledge' | 'consume' | 'monitor';

/**
 * How calls of each purpose wait for Redis: up to `waitMs` for the first connection; the same for a
 * lost one, and while a server refuses everything (LOADING, CLUSTERDOWN …), unless `failFast`. A
 * server that cannot fetch must know at once; an enqueue waits for the end of a short failover.
 */
const WAITING: Readonly<Record<ConnectionPurpose, { waitMs: number; failFast: boolean }>> = {
  produce: { waitMs: 5_000, failFast: false },
  acknowledge: { waitMs: 5_000, failFast: false },
  consume: { waitMs: 5_000, failFast: true },
  monitor: { waitMs: 5_000, failFast: false },
};

/**
 * `lost` is reported once per outage, also when the first attempt to connect fails; `ready` at
 * every (re)connection.
 */
export type StateListener = (purpose: ConnectionPurpose, state: 'ready' | 'lost', error?: Error) => void;

/**
 * All connections of one broker to Redis. Each is opened at its first use. Nothing is ever sent
 * twice: a rejected call was sent at most once, and `wasSent(error)` returns whether it may have
 * happened.
 */
export class RedisConnections {
  readonly isCluster: boolean;
  private readonly factory: ClientFactory;
  private readonly persistent = new Map<ConnectionPurpose, PersistentConnection>();
  private readonly ephemeral = new Set<Redis>();
  private readonly listeners = new Set<StateListener>();
  private failovers: FailoverWatch | undefined;
  private closing: Promise<void> | undefined;

  /**
   * @param clock for network timeouts only; real time even when the clock of tasks is moved by hand
   * @throws InvalidOptionError
   */
  constructor(
    input: ConnectionInput,
    private readonly clock: Clock = new SystemClock(),
  ) {
    this.factory = new ClientFactory(planConnection(input));
    this.isCluster = this.factory.isCluster;
  }

  /** Where Redis is, for messages; without credentials. */
  get target(): string {
    return this.factory.target;
  }

  /**
   * The driver's client for this purpose, maybe not connected: for {@link run}, or after {@link
   * ready}.
   */
  command(purpose: ConnectionPurpose): RedisClient {
    return this.connection(purpose).client;
  }

  /**
   * The client, once it is connected. @throws BrokerUnavailableError, ClosedError: nothing was sent
   */
  async ready(purpose: ConnectionPurpose): Promise<RedisClient> {
    await this.connection(purpose).whenReady();
    return this.connection(purpose).client;
  }

  /**
   * Waits for the connection, calls `send`, and converts errors of the driver into ours.
   *
   * @param what for messages, as in `enqueue`
   * @param send called again when Redis refuses everything for now, unless `failFast`
   * @throws BrokerUnavailableError; `wasSent(error)` returns whether it may have happened
   */
  async run<T>(purpose: ConnectionPurpose, what: string, send: (client: RedisClient) => Promise<T>): Promise<T> {
    const connection = this.connection(purpose);
    let end: number | undefined;
    for (let attempt = 1; ; attempt++) {
      if (!connection.isReady) await connection.whenReady();
      try {
        return await send(connection.client);
      } catch (error) {
        const { waitMs, failFast } = WAITING[purpose];
        end ??= this.clock.now() + waitMs;
        if (failFast || !isTransient(error) || this.clock.now() >= end) throw toBrokerError(error, what);
      }
      await new Promise<void>((resolve) => this.clock.after(reconnectDelay(attempt, 500), resolve));
    }
  }

  /** What a thread needs to connect. A text says why it cannot. */
  plain(): PlainConnection | string {
    return this.factory.plain();
  }

  /** The server that has this key, as far as the consumer knows; `undefined` while it is not connected. */
  addressOf(key: string): Address | undefined {
    const client = this.persistent.get('consume')?.client;
    if (!client) return undefined;
    if (client.isCluster) return addressIn(client as Cluster, key);
    const { options, stream } = client as Redis & { stream?: { remoteAddress?: string; remotePort?: number } };
    if (options.path !== undefined && !options.sentinels) return { path: options.path };
    if (!options.sentinels) return { host: options.host ?? 'localhost', port: options.port ?? 6379 };
    const { remoteAddress: host, remotePort: port } = stream ?? {};
    return host === undefined || port === undefined ? undefined : { host, port };
  }

  /** Reports connections that are opened and lost, until the returned function is called. */
  onStateChange(listener: StateListener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /**
   * A connection of its own for what belongs to one socket: to the server, to the named node of the
   * cluster, or to any of its masters.
   *
   * @param onGone called once when it is lost later, not when it is closed
   * @throws BrokerUnavailableError, ClosedError
   */
  async open(name: string, onGone: (error: Error) => void, node?: string): Promise<EphemeralConnection> {
    const template = this.isCluster ? await this.findNode(node) : undefined;
    if (this.closing) throw new ClosedError('the connections to Redis are closed');
    this.watchFailovers();
    const client = this.factory.ephemeral(name, template);
    this.ephemeral.add(client);
    client.once('end', () => this.ephemeral.delete(client));
    return EphemeralConnection.open(client, this.clock, (error) => {
      if (!this.closing) onGone(error);
    });
  }

  /**
   * The cluster client of the consumer, whose traffic keeps its slot table up to date. @throws
   * TypeError outside a cluster
   */
  async cluster(): Promise<Cluster> {
    if (!this.isCluster) throw new TypeError('there is no cluster');
    return (await this.ready('consume')) as Cluster;
  }

  /**
   * Closes after the commands under way, within a few seconds, in any state. Idempotent; a given
   * client stays open.
   */
  close(): Promise<void> {
    return (this.closing ??= this.closeAll());
  }

  private async closeAll(): Promise<void> {
    const ephemeral = [...this.ephemeral].map((client) => disconnect(client, this.clock));
    const persistent = [...this.persistent.values()].map((connection) => connection.close());
    await Promise.all([this.failovers?.close(), ...ephemeral, ...persistent]);
  }

  /** With sentinels only. */
  private watchFailovers(): void {
    const { sentinelGroup } = this.factory;
    if (sentinelGroup === undefined || this.failovers) return;
    const open = () => this.factory.sentinels('failovers');
    this.failovers = new FailoverWatch(open, sentinelGroup, this.clock, (master) => this.leaveOldMaster(master));
  }

  private leaveOldMaster(master: MasterAddress): void {
    if (this.closing) return;
    for (const connection of this.persistent.values())
      connection.leaveUnless((client) => isConnectedTo(client, master));
    for (const client of this.ephemeral) {
      if (client.status === 'ready' && !isConnectedTo(client, master)) client.disconnect();
    }
  }

  private connection(purpose: ConnectionPurpose): PersistentConnection {
    const known = this.persistent.get(purpose);
    if (known) return known;
    if (this.closing) throw new ClosedError('the connections to Redis are closed');
    this.watchFailovers();
    const connection = new PersistentConnection({
      create: () => this.factory.persistent(purpose),
      target: this.factory.target,
      hasTls: this.factory.hasTls,
      clock: this.clock,
      ...WAITING[purpose],
      onStateChange: (state, error) => this.listeners.forEach((listener) => listener(purpose, state, error)),
    });
    this.persistent.set(purpose, connection);
    return connection;
  }

  private async findNode(key: string | undefined): Promise<Redis> {
    const masters = (await this.cluster()).nodes('master');
    const node = key === undefined ? masters[Math.floor(Math.random() * masters.length)] : masters.find(isNode(key));
    if (node) return node;
    throw new BrokerUnavailableError(`Redis is unavailable: ${key ?? 'a master'} is not a known node of the cluster`);
  }
}

function addressIn(cluster: Cluster, key: string): Address | undefined {
  const [, host, port] = /^(.+):(\d+)$/.exec(cluster.slots[slotOf(key)]?.[0] ?? '') ?? [];
  return host === undefined ? undefined : { host, port: Number(port) };
}

const isNode = (key: string) => (node: Redis) => `${node.options.host}:${node.options.port}` === key;
