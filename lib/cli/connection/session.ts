import { finishesWithin } from '../../async.js';
import type { ConnectionInput } from '../../broker/redis/connection/connection-options.js';
import type { ConnectionPurpose, RedisConnections } from '../../broker/redis/connection/connections.js';
import type { RedisBroker } from '../../broker/redis/redis-broker.js';
import type { AsynqClient } from '../../client/client.js';
import type { Clock } from '../../clock.js';
import { BrokerUnavailableError } from '../../errors.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { Relay } from '../../links/relay.js';

/** What is left then, the servers carry. */
const RELAY_TIMEOUT_MS = 2_000;

export interface SessionOptions {
  readonly connection: ConnectionInput;
  readonly keyPrefix: string | undefined;
  readonly clock: Clock;
}

/** The connections of one command. Only commands that need Redis load this module. */
export class Session {
  /** Of the inspector and the client. */
  private relay: Relay | undefined;

  private constructor(
    private readonly connections: RedisConnections,
    private readonly broker: RedisBroker,
  ) {}

  /** Opens no connection yet. @throws InvalidOptionError */
  static async open({ connection, keyPrefix, clock }: SessionOptions): Promise<Session> {
    const [{ RedisConnections }, { RedisBroker }] = await Promise.all([
      import('../../broker/redis/connection/connections.js'),
      import('../../broker/redis/redis-broker.js'),
    ]);
    const connections = new RedisConnections(connection);
    return new Session(connections, new RedisBroker(connections, { clock, keyPrefix }));
  }

  get isCluster(): boolean {
    return this.connections.isCluster;
  }

  /** The address of Redis. */
  get where(): string {
    return this.connections.target;
  }

  /** @throws BrokerUnavailableError as soon as the first attempt to connect fails */
  async inspector(): Promise<AsynqInspector> {
    const [{ AsynqInspector }] = await Promise.all([import('../../inspector/inspector.js'), this.connect('monitor')]);
    return new AsynqInspector(this.broker, await this.sharedRelay());
  }

  /** @throws BrokerUnavailableError */
  async client(): Promise<AsynqClient> {
    const [{ AsynqClient }] = await Promise.all([import('../../client/client.js'), this.connect('produce')]);
    return new AsynqClient(this.broker, {}, { relay: await this.sharedRelay() });
  }

  /** The text of `INFO`, in a cluster that of `CLUSTER INFO`. */
  async redisInfo(): Promise<string> {
    const { cluster, nodes } = await this.broker.operations.redisInfo();
    return cluster?.info ?? nodes[0]?.info ?? '';
  }

  /** What actions cause for linked tasks is carried yet, as far as Redis replies. */
  async close(): Promise<void> {
    if (this.relay) await finishesWithin(this.relay.close(), RELAY_TIMEOUT_MS, this.broker.clock);
    await this.broker.close();
  }

  private async sharedRelay(): Promise<Relay> {
    const { Relay } = await import('../../links/relay.js');
    return (this.relay ??= new Relay(this.broker.links));
  }

  /** A server waits for Redis; a command fails at once, as somebody waits for it. */
  private async connect(role: ConnectionPurpose): Promise<void> {
    let forget: (() => void) | undefined;
    const lost = new Promise<never>((_, reject) => {
      forget = this.connections.onStateChange((which, state, cause) => {
        if (which === role && state === 'lost') reject(new BrokerUnavailableError('lost', { cause }));
      });
    });
    try {
      await Promise.race([this.connections.ready(role), lost]);
    } catch (error) {
      if (!(error instanceof BrokerUnavailableError)) throw error;
      throw unreachable(this.connections.target, error.cause as Error | undefined);
    } finally {
      forget?.();
    }
  }
}

const CONNECTION_REMEDY = 'check that it runs there, or give its address with --uri, ASYNQ_URI or a config file';
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /^(NOAUTH|WRONGPASS) /,
    'give the password with ASYNQ_PASSWORD (and a user with --username), the URL or a config file',
  ],
  [/DB index is out of range/, 'give another number with --db, ASYNQ_DB, the URL or a config file'],
];

function unreachable(target: string, cause: Error | undefined): BrokerUnavailableError {
  const reason = cause ? `: ${cause.message.replace(/\.$/, '')}` : '';
  const remedy = REMEDIES.find(([about]) => about.test(cause?.message ?? ''))?.[1] ?? CONNECTION_REMEDY;
  return new BrokerUnavailableError(`no connection to Redis at ${target}${reason}; ${remedy}`, { cause });
}
