import { type Clock, type ClockTimer, SystemClock } from '../../../clock.js';
import { ClosedError } from '../../../errors.js';
import { toBrokerError } from './broker-error.js';
import { reconnectDelay } from './client-settings.js';
import type { RedisConnections } from './connections.js';
import type { EphemeralConnection } from './ephemeral-connection.js';

/**
 * Subscribes to one or more pub/sub channels on a connection of its own and stays subscribed: a lost
 * connection is replaced, after growing pauses. Messages published meanwhile are lost. In a cluster
 * any node is used.
 *
 * @param onMessage gets the text; bytes that are not UTF-8 arrive as U+FFFD
 * @returns ends the subscription
 * @throws BrokerUnavailableError when the first attempt fails; then nothing continues in the
 * background
 */
export async function subscribe(
  connections: RedisConnections,
  channels: string | readonly string[],
  onMessage: (message: string) => void,
  clock: Clock = new SystemClock(),
): Promise<() => Promise<void>> {
  const subscription = new Subscription(connections, [channels].flat(), onMessage, clock);
  await subscription.open();
  return () => subscription.stop();
}

class Subscription {
  private connection: EphemeralConnection | undefined;
  private retry: ClockTimer | undefined;
  private attempts = 0;
  private stopped = false;

  constructor(
    private readonly connections: RedisConnections,
    private readonly channels: readonly string[],
    private readonly onMessage: (message: string) => void,
    private readonly clock: Clock,
  ) {}

  /** Connects and subscribes; a failure closes the connection. */
  async open(): Promise<void> {
    const connection = await this.connections.open('subscribe', () => this.connection && this.reopenLater());
    try {
      const { client } = connection;
      client.on('messageBuffer', (_channel: Buffer, message: Buffer) => {
        if (!this.stopped) this.onMessage(message.toString());
      });
      await client.subscribe(...this.channels);
      if (!connection.isOpen) throw new Error('Connection is closed.');
    } catch (error) {
      await connection.close();
      throw toBrokerError(error, 'SUBSCRIBE');
    }
    if (this.stopped) return connection.close();
    this.connection = connection;
    this.attempts = 0;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.retry?.cancel();
    await this.connection?.close();
  }

  private reopenLater(): void {
    this.connection = undefined;
    if (this.stopped) return;
    this.retry?.cancel();
    this.retry = this.clock.after(reconnectDelay(++this.attempts), () => {
      this.open().catch((error: unknown) => {
        if (!(error instanceof ClosedError)) this.reopenLater();
      });
    });
  }
}
