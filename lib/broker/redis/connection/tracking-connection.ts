import type { Redis } from 'ioredis';
import { WakeUpRefusedError } from '../../../errors.js';
import { isReply, toBrokerError } from './broker-error.js';
import type { EphemeralConnection } from './ephemeral-connection.js';

/** Where Redis publishes the names of changed keys to a RESP2 connection. */
const INVALIDATIONS = '__redis__:invalidate';

export type Command = [name: string, ...args: (string | number)[]];

export interface TrackingHooks {
  /** These keys have changed since they were read; `undefined`: all of them (the database was flushed). */
  onChanged(keys: string[] | undefined): void;
  /** Called once, when either connection is lost: nothing is tracked any more. */
  onLost(error: Error): void;
}

/**
 * Notices from one Redis node: the server remembers what is read here, and reports its next change,
 * once. A pair of connections, because over RESP2 the notices must go to another connection than
 * the reads.
 */
export class TrackingConnection {
  private ended = false;

  private constructor(
    private readonly reader: EphemeralConnection,
    private readonly notices: EphemeralConnection,
  ) {}

  /**
   * @param connect opens one connection to the node, with a name and a callback for its loss
   * @param prefix every change of a key that begins so is reported, by whomever, instead of what is read
   * @throws BrokerUnavailableError, WakeUpRefusedError
   */
  static async open(
    connect: (name: string, onGone: (error: Error) => void) => Promise<EphemeralConnection>,
    hooks: TrackingHooks,
    prefix?: string,
  ): Promise<TrackingConnection> {
    let tracking: TrackingConnection | undefined;
    const onGone = (error: Error): void => tracking?.lose(error, hooks);
    const opened = await Promise.allSettled([connect('track', onGone), connect('notices', onGone)]);
    const connections = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    try {
      const [reader, notices] = connections;
      if (!reader || !notices) throw opened.find((result) => result.status === 'rejected')?.reason;
      await listen(reader.client, notices.client, hooks, prefix);
      if (!reader.isOpen || !notices.isOpen) throw new Error('Connection is closed.');
      return (tracking = new TrackingConnection(reader, notices));
    } catch (error) {
      const refused = isReply(error) && connections.every((connection) => connection.isOpen);
      await Promise.all(connections.map((connection) => connection.close()));
      throw refused ? refusal(error as Error) : toBrokerError(error, 'CLIENT TRACKING');
    }
  }

  /**
   * Reads in one batch (what is sent in one tick is one write). From then on, what was read is
   * tracked.
   *
   * @param asBuffers whether replies are bytes
   */
  read(commands: readonly Command[], asBuffers = false): Promise<unknown[]> {
    const { client } = this.reader;
    return Promise.all(
      commands.map(([name, ...args]) => (asBuffers ? client.callBuffer(name, ...args) : client.call(name, ...args))),
    );
  }

  async close(): Promise<void> {
    this.ended = true;
    await Promise.all([this.reader.close(), this.notices.close()]);
  }

  private lose(error: Error, hooks: TrackingHooks): void {
    if (this.ended) return;
    void this.close();
    hooks.onLost(error);
  }
}

/** CLIENT ID comes before SUBSCRIBE, after which a RESP2 connection accepts no other command. */
async function listen(reader: Redis, notices: Redis, hooks: TrackingHooks, prefix?: string): Promise<void> {
  const id = (await notices.call('CLIENT', 'ID')) as number;
  notices.on('messageBuffer', (_channel: Buffer, keys: Buffer[] | null) =>
    hooks.onChanged(keys?.map((key) => key.toString())),
  );
  await notices.subscribe(INVALIDATIONS);
  const broadcast = prefix === undefined ? [] : ['BCAST', 'PREFIX', prefix];
  await reader.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id, ...broadcast);
}

const refusal = (cause: Error): WakeUpRefusedError =>
  new WakeUpRefusedError(
    `Redis does not give notice of changed keys: ${cause.message}. Allow CLIENT ID, CLIENT TRACKING and SUBSCRIBE ` +
      `${INVALIDATIONS} to this user, or let idle servers poll`,
    { cause },
  );
