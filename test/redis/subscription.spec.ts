import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { subscribe } from '../../lib/broker/redis/connection/subscription.js';
import { BrokerUnavailableError, ClosedError } from '../../lib/errors.js';
import { freePort } from '../support/redis-process.js';
import { startCluster } from '../support/redis.js';
import { clientsOf, connectionsTo, expectNoHandles, namesOf, observe, ownServer } from './support.js';

const CHANNEL = 'asynq:cancel';

describe('subscribe', () => {
  it('receives messages from when it has resolved until it is ended', async () => {
    const server = await ownServer();
    const observer = observe(server.port);
    const received: string[] = [];
    const end = await subscribe(connectionsTo(server.url), CHANNEL, (id) => received.push(id));
    expect(await observer.publish(CHANNEL, 'one')).toBe(1);
    await observer.publish('other', 'never');
    await observer.publish(CHANNEL, Buffer.from([0x66, 0xff, 0x66]));
    await observer.publish(CHANNEL, '');
    await vi.waitFor(() => expect(received).toEqual(['one', 'f\ufffdf', '']));
    await end();
    expect(await observer.publish(CHANNEL, 'two')).toBe(0);
    expect(await namesOf(observer)).toEqual([]);
    expect(received).toHaveLength(3);
  });

  it('rejects when Redis is down, and leaves nothing behind', async () => {
    const connections = connectionsTo({ host: '127.0.0.1', port: await freePort() });
    await expect(subscribe(connections, CHANNEL, () => undefined)).rejects.toThrow(/ECONNREFUSED/);
    await expectNoHandles();
    await connections.close();
    await expect(subscribe(connections, CHANNEL, () => undefined)).rejects.toThrow(ClosedError);
  });

  it('rejects when subscribing is refused, and leaves nothing behind', async () => {
    const server = await ownServer();
    const observer = observe(server.port);
    await observer.call('ACL', 'SETUSER', 'mute', 'on', '>pw', '~*', '+@all', 'resetchannels');
    const connections = connectionsTo(`redis://mute:pw@127.0.0.1:${server.port}`);
    const refused = subscribe(connections, CHANNEL, () => undefined);
    await expect(refused).rejects.toThrow(BrokerUnavailableError);
    await expect(refused).rejects.toThrow(/NOPERM/);
    await vi.waitFor(async () => expect(await namesOf(observer)).toEqual([]));
  });

  it('subscribes again after its connection or Redis was killed', async () => {
    const server = await ownServer();
    const observer = observe(server.port);
    const received: string[] = [];
    await subscribe(connectionsTo(server.url), CHANNEL, (id) => received.push(id));
    const [row] = await clientsOf(observer);
    expect(row?.name).toBe('nestjs-asynq:subscribe');
    await observer.call('CLIENT', 'KILL', 'ID', row?.id ?? '');
    await vi.waitFor(async () => expect(await observer.publish(CHANNEL, 'one')).toBe(1));
    await vi.waitFor(() => expect(received).toEqual(['one'])); // or it dies with the server, on its way
    await server.kill();
    await server.start();
    await vi.waitFor(async () => expect(await observer.publish(CHANNEL, 'two')).toBe(1));
    await vi.waitFor(() => expect(received).toEqual(['one', 'two']));
  });

  it('stops trying when it is ended or everything is closed while Redis is down', async () => {
    const server = await ownServer();
    const connections = connectionsTo(server.url);
    const end = await subscribe(connections, CHANNEL, () => undefined);
    await subscribe(connections, CHANNEL, () => undefined);
    await server.kill();
    await end();
    await connections.close();
    await expectNoHandles();
    await server.start();
    expect(await namesOf(observe(server.port))).toEqual([]);
  });

  it('receives messages in a cluster from every node', async () => {
    const cluster = await startCluster(3);
    onTestFinished(() => cluster.stop());
    const received = new Set<string>();
    await subscribe(connectionsTo({ cluster: cluster.nodes }), CHANNEL, (id) => received.add(id));
    // Repeatedly: in a new cluster not all nodes are connected yet, and it loses messages that it
    // cannot forward.
    await vi.waitFor(async () => {
      for (const { port } of cluster.nodes) await observe(port).publish(CHANNEL, `${port}`);
      expect([...received].sort()).toEqual(cluster.nodes.map(({ port }) => `${port}`).sort());
    });
  });
});
