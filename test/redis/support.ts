import { setImmediate } from 'node:timers/promises';
import { inspect } from 'node:util';
import { Redis } from 'ioredis';
import { expect, onTestFinished } from 'vitest';
import type { ConnectionInput } from '../../lib/broker/redis/connection/connection-options.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import type { Clock } from '../../lib/clock.js';
import { type RedisProcess, startRedis } from '../support/redis.js';

/** Connections that are closed when the test is over. */
export function connectionsTo(input: ConnectionInput, clock?: Clock): RedisConnections {
  const connections = new RedisConnections(input, clock);
  onTestFinished(() => connections.close());
  return connections;
}

/** A server for this test only. */
export async function ownServer(options?: Parameters<typeof startRedis>[0]): Promise<RedisProcess> {
  const server = await startRedis(options);
  onTestFinished(() => server.stop());
  return server;
}

/** A client beside those under test; its name in CLIENT LIST is `observer`. */
export function observe(port: number, options: object = {}): Redis {
  const redis = new Redis({ host: '127.0.0.1', port, connectionName: 'observer', protocol: 2, ...options });
  redis.on('error', () => undefined);
  onTestFinished(() => redis.disconnect());
  return redis;
}

export interface ClientRow {
  readonly id: string;
  readonly name: string;
  readonly resp: string;
  readonly flags: string;
}

/** The connected clients, without the observer. */
export async function clientsOf(observer: Redis): Promise<ClientRow[]> {
  const list = (await observer.call('CLIENT', 'LIST')) as string;
  const rows = list.split('\n').filter(Boolean);
  return rows
    .map((row) => Object.fromEntries(row.split(' ').map((field) => field.split(/=(.*)/s))) as unknown as ClientRow)
    .filter(({ name }) => name !== 'observer');
}

export async function namesOf(observer: Redis): Promise<string[]> {
  return (await clientsOf(observer)).map(({ name }) => name).sort();
}

/** A promise to be resolved by a callback, and a count of how often it was. */
export function signal<T = void>(): { fired: Promise<T>; fire: (value: T) => void; values: T[] } {
  const values: T[] = [];
  let resolve: (value: T) => void;
  const fired = new Promise<T>((done) => (resolve = done));
  return { fired, values, fire: (value) => (values.push(value), resolve(value)) };
}

/** Waits, without a timer, until no socket and no timer keeps this process alive. */
export async function expectNoHandles(): Promise<void> {
  const left = () => process.getActiveResourcesInfo().filter((kind) => /^(TCPSocket|TLS|Timeout)/.test(kind));
  const end = performance.now() + 4_000;
  while (left().length > 0 && performance.now() < end) await setImmediate();
  expect(left()).toEqual([]);
}

export async function failure(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    (value) => new Error(`resolved to ${inspect(value)}`),
    (error: Error) => error,
  );
}
