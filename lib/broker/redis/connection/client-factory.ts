import type { Socket } from 'node:net';
import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import { clusterSettings, persistentSettings, ephemeralSettings, sentinelSettings } from './client-settings.js';
import type { ConnectionPlan, ExistingClient } from './connection-options.js';
import { type PlainConnection, plainConnection } from './plain-connection.js';
import { isRefusedDatabase } from './remedies.js';
import { watchReplies } from './socket-timeout.js';

export type RedisClient = Redis | Cluster;

type Duplicable<T> = { duplicate(...overrides: unknown[]): T };

/**
 * Makes the ioredis clients of one plan. They do not connect by themselves; who takes one handles
 * its `error` events.
 */
export class ClientFactory {
  readonly isCluster: boolean;
  /** Where Redis is, for messages; without credentials. */
  readonly target: string;

  constructor(private readonly plan: ConnectionPlan) {
    this.isCluster = plan.kind === 'cluster' || plan.kind === 'clusterClient';
    this.target = describeTarget(plan);
  }

  /** A client that always reconnects. */
  persistent(name: string): RedisClient {
    const client = this.makePersistent(name);
    if (client.isCluster) client.on('+node', prepareNode);
    else prepare(client as Redis);
    return client;
  }

  /**
   * A client of one connection that does not reconnect: to the server, or to this node of the
   * cluster.
   */
  ephemeral(name: string, node?: Redis): Redis {
    const client = node ? this.duplicateNode(node, name) : this.makeEphemeral(name);
    prepare(client);
    return client;
  }

  get hasTls(): boolean {
    return (this.clusterOptions?.redisOptions ?? this.serverOptions).tls !== undefined;
  }

  /** What a thread needs to connect. A text says why it cannot. */
  plain(): PlainConnection | string {
    return plainConnection(this.clusterOptions?.redisOptions ?? this.serverOptions);
  }

  /** The name of the master, with sentinels. */
  get sentinelGroup(): string | undefined {
    const { sentinels, name } = this.serverOptions;
    return sentinels ? name : undefined;
  }

  /** One client per sentinel. */
  sentinels(name: string): Redis[] {
    const given = this.serverOptions;
    return (given.sentinels ?? []).map((address) => new Redis(sentinelSettings(given, address, name)));
  }

  private get clusterOptions(): ClusterOptions | undefined {
    const { plan } = this;
    if (plan.kind === 'cluster') return plan.options;
    return plan.kind === 'clusterClient' ? plan.client.options : undefined;
  }

  private get serverOptions(): RedisOptions {
    const { plan } = this;
    if (plan.kind === 'options') return plan.options;
    return plan.kind === 'client' ? plan.client.options : {};
  }

  private makePersistent(name: string): RedisClient {
    const { plan } = this;
    switch (plan.kind) {
      case 'options':
        return new Redis(persistentSettings(plan.options, name));
      case 'cluster':
        return new Cluster([...plan.nodes], clusterSettings(plan.options, name));
      case 'client':
        return duplicate(plan.client, persistentSettings(plan.client.options, name));
      case 'clusterClient':
        return (plan.client as unknown as Duplicable<Cluster>).duplicate(
          [],
          clusterSettings(plan.client.options as ClusterOptions, name),
        );
    }
  }

  private makeEphemeral(name: string): Redis {
    const { plan } = this;
    if (plan.kind === 'client') return duplicate(plan.client, ephemeralSettings(plan.client.options, name));
    if (plan.kind === 'options') return new Redis(ephemeralSettings(plan.options, name));
    throw new TypeError(`an ephemeral connection to ${this.target} needs a node`);
  }

  private duplicateNode(node: Redis, name: string): Redis {
    const { plan } = this;
    const options: ClusterOptions = 'client' in plan ? plan.client.options : plan.options;
    const { connectionName }: RedisOptions = options.redisOptions ?? {};
    return node.duplicate(ephemeralSettings({ ...node.options, connectionName }, name));
  }
}

const duplicate = (client: ExistingClient, settings: RedisOptions): Redis =>
  (client as unknown as Duplicable<Redis>).duplicate(settings);

/** A connection whose database is refused is closed before it takes a command: it would go to database 0. */
function prepare(client: Redis): void {
  watchReplies(client);
  client.on('error', (error: unknown) => {
    if (isRefusedDatabase(error)) (client as unknown as { stream: Socket }).stream.destroy();
  });
}

/**
 * Every node of a cluster. ioredis sends ASKING and ignores its promise. If the node goes away then, the rejection would be
 * unhandled.
 */
function prepareNode(node: Redis): void {
  watchReplies(node);
  const asking = node.asking.bind(node) as () => Promise<'OK'>;
  node.asking = (): Promise<'OK'> => {
    const reply = asking();
    reply.catch(() => undefined);
    return reply;
  };
}

function describeTarget(plan: ConnectionPlan): string {
  if (plan.kind === 'cluster')
    return `the cluster of ${plan.nodes.map(({ host, port }) => `${host}:${port}`).join(', ')}`;
  if (plan.kind === 'clusterClient') return 'the cluster of the given client';
  const options = (plan.kind === 'client' ? plan.client.options : plan.options) as RedisOptions;
  if (options.sentinels) return `the master "${options.name}" of the sentinels`;
  return options.path ?? `${options.host ?? 'localhost'}:${options.port ?? 6379}`;
}
