import type { Cluster, Redis } from 'ioredis';
import { type Clock, SystemClock } from '../../../clock.js';
import { BrokerUnavailableError, ClosedError } from '../../../errors.js';
import { isTransient, toBrokerError } from './broker-error.js';
import { ClientFactory, type RedisClient } from './client-factory.js';
import { reconnectDelay } from './client-settings.js';
import { type ConnectionInput, planConnection } from './connection-options.js';
import { FailoverWatch, isConnectedTo, type MasterAddress } from './failover-watch.js';
import { EphemeralConnection } from './ephemeral-connection.js';
import { PersistentConnection, disconnect } from './persistent-connection.js';

/**
 * `consume` takes, settles and extends leases; `produce` enqueues; `monitor` is everything else. A connection of its own
 * each, so that a bulk of one kind does not delay the others.
 */
export type ConnectionPurpose = 'produce' | 'consume' | 'monitor';

/**
 * How a role waits for Redis: for the first connection up to `patience` ms; for a lost one, and for a server that refuses
 * everything just now (LOADING, CLUSTERDOWN …), as long again, or not at all. A server that cannot fetch has to know at
 * once, an enqueue had better wait for the end of a short failover.
 */
const WAITING: Readonly<Record<ConnectionPurpose, { patience: number; failFast: boolean }>> = {
  produce: { patience: 5_000, failFast: false },
  consume: { patience: 5_000, failFast: true },
  monitor: { patience: 5_000, failFast: false },
};

/** `lost` is told once per outage, also when the first attempt to connect failed; `ready` at every (re)connection. */
export type StateListener = (role: ConnectionPurpose, state: 'ready' | 'lost', error?: Error) => void;

/**
 * Every connection of one broker to Redis. Nothing is connected before its first use. Nothing is ever sent twice: a call that
 * rejects was sent at most once, and `wasSent(error)` says whether it may have happened.
 */
export class RedisConnections {
  readonly isCluster: boolean;
  private readonly factory: ClientFactory;
  private readonly roles = new Map<ConnectionPurpose, PersistentConnection>();
  private readonly passing = new Set<Redis>();
  private readonly listeners = new Set<StateListener>();
  private failovers: FailoverWatch | undefined;
  private closing: Promise<void> | undefined;

  /**
   * @param clock for timeouts of the network only; real time even where tasks live by a clock that is moved by hand
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

  /** The driver's client of this role, not (yet) connected: for {@link run}, or after {@link ready}. */
  command(role: ConnectionPurpose): RedisClient {
    return this.role(role).client;
  }

  /** The client when it is connected. @throws BrokerUnavailableError, ClosedError: nothing was sent */
  async ready(role: ConnectionPurpose): Promise<RedisClient> {
    await this.role(role).whenReady();
    return this.role(role).client;
  }

  /**
   * Waits until the role is connected, calls `send`, and brings errors of the driver into ours.
   *
   * @param what for messages, as in `enqueue`
   * @param send called again when Redis refused to do anything for now, by a role that waits
   * @throws BrokerUnavailableError; ask `wasSent(error)` whether it may have happened
   */
  async run<T>(role: ConnectionPurpose, what: string, send: (client: RedisClient) => Promise<T>): Promise<T> {
    const connection = this.role(role);
    let end: number | undefined;
    for (let attempt = 1; ; attempt++) {
      if (!connection.isReady) await connection.whenReady();
      try {
        return await send(connection.client);
      } catch (error) {
        const { patience, failFast } = WAITING[role];
        end ??= this.clock.now() + patience;
        if (failFast || !isTransient(error) || this.clock.now() >= end) throw toBrokerError(error, what);
      }
      await new Promise<void>((resolve) => this.clock.after(reconnectDelay(attempt, 500), resolve));
    }
  }

  /** Tells of connections that come and go, until the returned function is called. */
  onStateChange(listener: StateListener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /**
   * A connection of its own for what belongs to one socket: to the server, to the node of the cluster named, or to any of
   * its masters.
   *
   * @param onGone called once when it is lost later on, not when it is closed
   * @throws BrokerUnavailableError, ClosedError
   */
  async open(name: string, onGone: (error: Error) => void, node?: string): Promise<EphemeralConnection> {
    const template = this.isCluster ? await this.findNode(node) : undefined;
    if (this.closing) throw new ClosedError('the connections to Redis are closed');
    this.watchFailovers();
    const client = this.factory.passing(name, template);
    this.passing.add(client);
    client.once('end', () => this.passing.delete(client));
    return EphemeralConnection.open(client, this.clock, (error) => {
      if (!this.closing) onGone(error);
    });
  }

  /** The cluster's client whose slot table is kept right by the traffic of the consumer. @throws TypeError outside a cluster */
  async cluster(): Promise<Cluster> {
    if (!this.isCluster) throw new TypeError('there is no cluster');
    return (await this.ready('consume')) as Cluster;
  }

  /** After the commands under way, within a few seconds, in whatever state. Idempotent; a client handed in stays open. */
  close(): Promise<void> {
    return (this.closing ??= this.closeAll());
  }

  private async closeAll(): Promise<void> {
    const passing = [...this.passing].map((client) => disconnect(client, this.clock));
    const roles = [...this.roles.values()].map((connection) => connection.close());
    await Promise.all([this.failovers?.close(), ...passing, ...roles]);
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
    for (const connection of this.roles.values()) connection.leaveUnless((client) => isConnectedTo(client, master));
    for (const client of this.passing) {
      if (client.status === 'ready' && !isConnectedTo(client, master)) client.disconnect();
    }
  }

  private role(role: ConnectionPurpose): PersistentConnection {
    const known = this.roles.get(role);
    if (known) return known;
    if (this.closing) throw new ClosedError('the connections to Redis are closed');
    this.watchFailovers();
    const connection = new PersistentConnection({
      create: () => this.factory.lasting(role),
      target: this.factory.target,
      clock: this.clock,
      ...WAITING[role],
      onStateChange: (state, error) => this.listeners.forEach((listener) => listener(role, state, error)),
    });
    this.roles.set(role, connection);
    return connection;
  }

  private async findNode(key: string | undefined): Promise<Redis> {
    const masters = (await this.cluster()).nodes('master');
    const node = key === undefined ? masters[Math.floor(Math.random() * masters.length)] : masters.find(isNode(key));
    if (node) return node;
    throw new BrokerUnavailableError(`Redis is unavailable: ${key ?? 'a master'} is not a known node of the cluster`);
  }
}

const isNode = (key: string) => (node: Redis) => `${node.options.host}:${node.options.port}` === key;
