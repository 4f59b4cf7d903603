import type { Redis } from 'ioredis';
import { withTimeout } from '../../../async.js';
import type { Clock, ClockTimer } from '../../../clock.js';
import { BrokerUnavailableError, ClosedError } from '../../../errors.js';
import { markUnsent, moreTelling, withoutArguments } from './broker-error.js';
import type { RedisClient } from './client-factory.js';
import { reconnectDelay } from './client-settings.js';
import { connectionRemedy } from './remedies.js';

/** How long a close waits for the commands under way, and then for the sockets. */
const QUIT_TIMEOUT_MS = 3_000;
const DISCONNECT_TIMEOUT_MS = 1_000;

/** Changes each time, so that the log would not know the line again. */
const SENTINEL_PAUSE = / Retrying from scratch after \d+ms\./;

interface Waiter {
  resolve(): void;
  reject(error: Error): void;
  timer: ClockTimer;
}

export interface PersistentConnectionOptions {
  /** Makes the client, which must not connect by itself. */
  readonly create: () => RedisClient;
  readonly target: string;
  readonly hasTls: boolean;
  readonly clock: Clock;
  /** Milliseconds that a call waits for Redis before it is rejected unsent. */
  readonly waitMs: number;
  /** Once a connection is lost, or the first attempt has failed, reject at once. */
  readonly failFast: boolean;
  readonly onStateChange: (state: 'ready' | 'lost', error?: Error) => void;
}

/**
 * A connection that always reconnects, behind a gate: a command reaches the driver only while the
 * connection is ready. So what the gate rejects was certainly never sent, and the driver never
 * stores commands.
 */
export class PersistentConnection {
  private made: RedisClient | undefined;
  private state: 'unused' | 'connecting' | 'ready' | 'lost' | 'closed' = 'unused';
  private lastError: Error | undefined;
  private closing: Promise<void> | undefined;
  private revival: ClockTimer | undefined;
  private revivals = 0;
  private readonly waiters = new Set<Waiter>();

  constructor(private readonly options: PersistentConnectionOptions) {}

  /** The driver's client. Use it when `isReady` says so, or after {@link whenReady}. */
  get client(): RedisClient {
    return (this.made ??= this.create());
  }

  get isReady(): boolean {
    return this.state !== 'closed' && this.made?.status === 'ready';
  }

  /**
   * Connects at the first call. @throws BrokerUnavailableError (unsent) when Redis is not
   * available; ClosedError after close
   */
  async whenReady(): Promise<void> {
    if (this.state === 'closed') throw closed();
    if (this.isReady) return;
    if (this.state === 'unused') this.connect();
    if (this.state === 'lost' && this.options.failFast) throw this.unavailable();
    await new Promise<void>((resolve, reject) => {
      const timer = this.options.clock.after(this.options.waitMs, () => this.settle(waiter, this.unavailable()));
      const waiter: Waiter = { resolve, reject, timer };
      this.waiters.add(waiter);
    });
  }

  /**
   * Asks the sentinels for the master again, unless the client is connected to it. Commands under
   * way may get no reply.
   */
  leaveUnless(isRight: (client: Redis) => boolean): void {
    if (!this.isReady || this.client.isCluster || isRight(this.client as Redis)) return;
    this.client.disconnect(true);
  }

  /** Closes after the commands under way, within a time limit. Idempotent. */
  close(): Promise<void> {
    return (this.closing ??= this.end());
  }

  private create(): RedisClient {
    const client = this.options.create();
    client.on('ready', () => this.becomeReady());
    client.on('close', () => this.becomeLost());
    client.on('end', () => this.revive());
    client.on('error', (error: Error) => this.fail(rootOf(error)));
    client.on('node error', (error: Error) => this.remember(rootOf(error)));
    return client;
  }

  private connect(): void {
    if (this.state === 'unused') this.state = 'connecting';
    this.client.connect().catch(() => undefined); // its events report the failure
  }

  private becomeReady(): void {
    if (this.state === 'closed') return;
    this.state = 'ready';
    this.lastError = undefined;
    this.revivals = 0;
    for (const waiter of this.waiters) this.settle(waiter);
    this.options.onStateChange('ready');
  }

  private becomeLost(): void {
    forgetSocketTimeout(this.client);
    if (this.state === 'closed' || this.state === 'lost') return;
    this.state = 'lost';
    if (this.options.failFast) for (const waiter of this.waiters) this.settle(waiter, this.unavailable());
    this.options.onStateChange('lost', this.lastError);
  }

  /**
   * Our clients never give up. When ioredis does (it could not start to connect), connect again.
   */
  private revive(): void {
    this.becomeLost();
    if (this.state === 'closed') return;
    this.revival = this.options.clock.after(reconnectDelay(++this.revivals), () => this.connect());
  }

  /**
   * When no sentinel replies, no connection is opened that could close: only the error shows it.
   */
  private fail(error: Error): void {
    this.remember(error);
    if (this.state === 'connecting') this.becomeLost();
  }

  private remember(error: Error): void {
    this.lastError = moreTelling(this.lastError, error);
  }

  private settle(waiter: Waiter, error?: Error): void {
    this.waiters.delete(waiter);
    waiter.timer.cancel();
    if (error) waiter.reject(error);
    else waiter.resolve();
  }

  private unavailable(): BrokerUnavailableError {
    const reason = this.lastError ? `: ${this.lastError.message.replace(SENTINEL_PAUSE, '')}` : '';
    const remedy = connectionRemedy(this.lastError, this.options.hasTls);
    const message = `Redis is unavailable: no connection to ${this.options.target}${reason}${remedy}`;
    return markUnsent(new BrokerUnavailableError(message, { cause: this.lastError }));
  }

  private async end(): Promise<void> {
    const wasReady = this.isReady;
    this.state = 'closed';
    this.revival?.cancel();
    for (const waiter of this.waiters) this.settle(waiter, closed());
    if (!this.made) return;
    const client = this.made;
    const { clock } = this.options;
    const quit = wasReady ? client.quit().catch(() => undefined) : undefined; // its reply comes after all others
    if (quit) await withTimeout(quit, QUIT_TIMEOUT_MS, clock);
    await disconnect(client, clock);
  }
}

const closed = (): ClosedError => markUnsent(new ClosedError('the connections to Redis are closed'));

/** Resolves when the client has ended, within a second. */
export async function disconnect(client: RedisClient, clock: Clock): Promise<void> {
  if (client.status === 'end') return;
  const stopsSilently = client.status === 'reconnecting'; // it has no socket, and emits no `end`
  const ended = new Promise<void>((resolve) => client.once('end', resolve));
  client.disconnect();
  forgetSocketTimeout(client);
  if (!stopsSilently) await withTimeout(ended, DISCONNECT_TIMEOUT_MS, clock);
}

/**
 * A cluster client reports only that all its nodes failed; the reason is in the error of the last
 * one.
 */
function rootOf(error: Error): Error {
  const { lastNodeError } = error as { lastNodeError?: unknown };
  return withoutArguments(lastNodeError instanceof Error ? lastNodeError : error);
}

/** ioredis 5 leaves this timer running when a connection closes; it would then destroy the next connection. */
export function forgetSocketTimeout(client: RedisClient): void {
  const state = client as unknown as { socketTimeoutTimer?: NodeJS.Timeout | undefined };
  clearTimeout(state.socketTimeoutTimer);
  state.socketTimeoutTimer = undefined;
}
