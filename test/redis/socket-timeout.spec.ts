import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { watchReplies } from '../../lib/broker/redis/connection/socket-timeout.js';
import { ManualClock } from '../../lib/clock.js';
import { ownServer } from './support.js';

describe('a watched connection', () => {
  async function watched(port: number) {
    const clock = new ManualClock();
    const bare = { protocol: 2, lazyConnect: true, enableReadyCheck: false, disableClientInfo: true } as const;
    const client = new Redis({ port, socketTimeout: 1_000, retryStrategy: null, ...bare });
    const errors: string[] = [];
    client.on('error', (error: Error) => errors.push(error.message));
    onTestFinished(() => client.disconnect());
    watchReplies(client, clock);
    await client.connect();
    return { client, clock, errors };
  }

  it('has one timer while commands are under way, no listener, and nothing afterwards', async () => {
    const { port } = await ownServer();
    const { client, clock } = await watched(port);
    const after = vi.spyOn(clock, 'after');
    const listeners = client.stream.listenerCount('data');
    for (let n = 0; n < 20; n++) {
      await client.ping();
      expect(client.stream.listenerCount('data')).toBe(listeners);
    }
    clock.advance(10_000);
    expect(after).toHaveBeenCalledTimes(1);
    await client.ping();
    expect(after).toHaveBeenCalledTimes(2);
  });

  it('is closed when a command has no reply for the timeout, and nothing else was read', async () => {
    const server = await ownServer();
    const { client, clock, errors } = await watched(server.port);
    process.kill(server.pid ?? 0, 'SIGSTOP');
    const call = client.ping().catch((error: Error) => error.message);
    clock.advance(999);
    expect(client.stream.destroyed).toBe(false);
    clock.advance(1);
    expect(await call).toBe('Connection is closed.');
    expect(errors).toEqual(["Socket timeout. Expecting data, but didn't receive any in 1000ms."]);
    process.kill(server.pid ?? 0, 'SIGCONT');
  });

  it('stays open while a long reply comes in parts', async () => {
    const peer = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void peer.close());
    await once(peer, 'listening');
    const accepted = once(peer, 'connection');
    const { client, clock, errors } = await watched((peer.address() as AddressInfo).port);
    const [socket] = (await accepted) as [Socket];
    const call = client.get('long');
    for (const part of ['$10\r\n', 'a', ' long', ' on', 'e', '\r', '\n']) {
      const read = once(client.stream, 'data');
      socket.write(part);
      await read;
      clock.advance(750);
    }
    expect([await call, client.status, errors]).toEqual(['a long one', 'ready', []]);
  });

  it('leaves the next connection alone', async () => {
    const server = await ownServer();
    const { client, clock, errors } = await watched(server.port);
    await client.ping();
    client.disconnect();
    await once(client, 'end');
    await client.connect();
    process.kill(server.pid ?? 0, 'SIGSTOP');
    const call = client.ping();
    clock.advance(500);
    process.kill(server.pid ?? 0, 'SIGCONT');
    expect([await call, errors]).toEqual(['PONG', []]);
  });
});
