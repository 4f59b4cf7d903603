import type { Redis } from 'ioredis';
import type { Clock, ClockTimer } from '../../../clock.js';
import { moreTelling, toBrokerError, withoutArguments } from './broker-error.js';
import { disconnect, forgetSocketTimeout } from './persistent-connection.js';

/** Milliseconds between two PINGs: a subscriber sends nothing else that would show a dead peer. */
const PING_EVERY = 10_000;

/**
 * A connection for what belongs to one socket: a subscription, the keys that Redis tracks for it.
 * It does not reconnect, as all of that is lost with the socket; its user is called once and opens
 * another.
 */
export class EphemeralConnection {
  private state: 'opening' | 'open' | 'gone' = 'opening';
  private lastError: Error | undefined;
  private ping: ClockTimer | undefined;

  private constructor(
    readonly client: Redis,
    private readonly clock: Clock,
    private readonly onGone: (error: Error) => void,
  ) {
    client.on('error', (error: Error) => (this.lastError = moreTelling(this.lastError, withoutArguments(error))));
    client.on('close', () => this.leave());
    client.on('end', () => this.leave());
  }

  /**
   * @param onGone called once when the open connection is lost; not if it never opened, nor after
   * {@link close}
   * @throws BrokerUnavailableError
   */
  static async open(client: Redis, clock: Clock, onGone: (error: Error) => void): Promise<EphemeralConnection> {
    const connection = new EphemeralConnection(client, clock, onGone);
    try {
      await client.connect();
    } catch (error) {
      await connection.close();
      throw toBrokerError(connection.lastError ?? error, 'connect');
    }
    if (connection.state === 'gone') throw toBrokerError(new Error('Connection is closed.'), 'connect');
    connection.state = 'open';
    connection.schedulePing();
    return connection;
  }

  get isOpen(): boolean {
    return this.state === 'open';
  }

  async close(): Promise<void> {
    this.state = 'gone';
    this.ping?.cancel();
    await disconnect(this.client, this.clock);
  }

  private leave(): void {
    this.ping?.cancel();
    forgetSocketTimeout(this.client);
    const wasOpen = this.state === 'open';
    this.state = 'gone';
    if (wasOpen) this.onGone(toBrokerError(this.lastError ?? new Error('Connection is closed.'), 'connection'));
  }

  /** No reply within `socketTimeout` closes the connection. */
  private schedulePing(): void {
    this.ping = this.clock.after(PING_EVERY, () => {
      this.client.ping().catch(() => undefined);
      this.schedulePing();
    });
  }
}
