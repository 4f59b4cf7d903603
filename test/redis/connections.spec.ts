import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { inspect } from 'node:util';
import { Redis as Redis5 } from 'ioredis5';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { wasSent } from '../../lib/broker/redis/connection/broker-error.js';
import { reconnectDelay } from '../../lib/broker/redis/connection/client-settings.js';
import type { ConnectionPurpose } from '../../lib/broker/redis/connection/connections.js';
import { ManualClock } from '../../lib/clock.js';
import { BrokerUnavailableError, ClosedError, WrongKeyTypeError } from '../../lib/errors.js';
import { freePort } from '../support/redis-process.js';
import { startProxy } from './proxy.js';
import { clientsOf, connectionsTo, failure, namesOf, observe, ownServer, signal, expectNoHandles } from './support.js';

const ROLES: ConnectionPurpose[] = ['produce', 'consume', 'monitor'];

describe('RedisConnections', () => {
  it('connects each role at its first use, by its name, and not before', async () => {
    const server = await ownServer();
    const observer = observe(server.port);
    const connections = connectionsTo(server.url);
    connections.command('produce');
    expect(await namesOf(observer)).toEqual([]);
    await connections.run('consume', 'PING', (client) => client.ping());
    expect(await namesOf(observer)).toEqual(['nestjs-asynq:consume']);
    await Promise.all(ROLES.map((role) => connections.run(role, 'PING', (client) => client.ping())));
    expect(await namesOf(observer)).toEqual(['nestjs-asynq:consume', 'nestjs-asynq:monitor', 'nestjs-asynq:produce']);
    const resp = (await clientsOf(observer)).map((client) => client.resp);
    expect(new Set(resp)).toEqual(new Set(['2']));
  });

  it('uses the given name, password and database', async () => {
    const server = await ownServer({ args: ['--requirepass', 'secret'] });
    await observe(server.port, { password: 'secret' }).call('ACL', 'SETUSER', 'bob', 'on', '>pw', '~*', '+@all');
    const url = `redis://bob:pw@127.0.0.1:${server.port}/5`;
    const connections = connectionsTo({ url, connectionName: 'orders' });
    await connections.run('produce', 'SET', (client) => client.set('a', '1'));
    const observer = observe(server.port, { password: 'secret', db: 5 });
    expect(await observer.get('a')).toBe('1');
    expect(await namesOf(observer)).toEqual(['orders:produce']);
    expect(await observer.call('ACL', 'WHOAMI')).toBe('default');
  });

  it.each([
    ['', (port: number) => `redis://127.0.0.1:${port}/9`],
    [', with ioredis 5', (port: number) => new Redis5({ port, db: 9, lazyConnect: true })],
  ])('never works in another database than the given one%s', async (_, connectionOf) => {
    const server = await ownServer({ args: ['--databases', '4'] });
    const connections = connectionsTo(connectionOf(server.port));
    const refused = await failure(connections.run('consume', 'SET', (client) => client.set('a', '1')));
    expect(refused.message).toMatch(/: ERR DB index is out of range Give another db in the connection or its URL\.$/);
    const opened = await failure(connections.open('wake-ups', () => undefined));
    expect(opened.message).toMatch(/DB index is out of range/);
    await failure(connections.run('consume', 'SET', (client) => client.set('a', '1')));
    expect(await observe(server.port).dbsize()).toBe(0);
  });

  it.each([
    [{ port: 0, tls: {} }, 'If this port does not speak TLS, give redis:// or leave out tls.'],
    [{ cluster: [] as string[] }, 'It is no cluster: give { host, port } or a URL.'],
  ])('says what to do for %j', async (input, remedy) => {
    const server = await ownServer();
    const connection =
      'cluster' in input
        ? { cluster: [`127.0.0.1:${server.port}`] }
        : { ...input, host: '127.0.0.1', port: server.port, connectTimeout: 300 };
    const refused = await failure(connectionsTo(connection).run('consume', 'PING', (client) => client.ping()));
    expect(refused.message).toContain(remedy);
  });

  it('says what to do for a port that closes what speaks no TLS', async () => {
    const listener = createServer((socket) => socket.once('data', () => socket.resetAndDestroy()));
    onTestFinished(() => void listener.close());
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    const refused = await failure(
      connectionsTo({ host: '127.0.0.1', port }).run('consume', 'PING', (client) => client.ping()),
    );
    expect(refused.message).toContain('If this port speaks TLS, give rediss:// or tls: {}.');
  });

  it('says what to do for a replica', async () => {
    const master = await ownServer();
    const replica = await ownServer({ args: ['--replicaof', '127.0.0.1', String(master.port)] });
    const written = connectionsTo(replica.url).run('consume', 'SET', (client) => client.set('a', '1'));
    expect((await failure(written)).message).toContain(
      'this is a replica: give the address of its master, or sentinels',
    );
  });

  it('sends many calls made before the first connection over one connection', async () => {
    const server = await ownServer();
    const connections = connectionsTo(server.url);
    const replies = Array.from({ length: 50 }, () => connections.run('consume', 'INCR', (client) => client.incr('n')));
    expect(await Promise.all(replies)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    expect(await namesOf(observe(server.port))).toEqual(['nestjs-asynq:consume']);
  });

  it('keeps passwords and payloads out of its errors', async () => {
    const server = await ownServer({ args: ['--requirepass', 'right'] });
    const connections = connectionsTo(`redis://:TopSecret@127.0.0.1:${server.port}`);
    const refused = await failure(connections.run('consume', 'PING', (client) => client.ping()));
    expect(refused.message).toMatch(/: WRONGPASS .* Give username and password in the connection or its URL\.$/);
    expect(inspect(refused, { depth: 9, showHidden: true })).not.toContain('TopSecret');
    const known = connectionsTo(`redis://:right@127.0.0.1:${server.port}`);
    const wrongType = known.run('produce', 'EVAL', (client) =>
      client.eval('return redis.error_reply("ERR x")', 0, 'PAYLOAD'),
    );
    expect(inspect(await failure(wrongType), { depth: 9 })).not.toContain('PAYLOAD');
  });
});

describe('RedisConnections without Redis', () => {
  it('rejects a fetch at the first failed attempt, and then at once', async () => {
    const port = await freePort();
    const connections = connectionsTo({ host: '127.0.0.1', port });
    const first = await failure(connections.run('consume', 'dequeue', (client) => client.ping()));
    expect(first).toBeInstanceOf(BrokerUnavailableError);
    expect(first.message).toContain(`no connection to 127.0.0.1:${port}`);
    expect(first.message).toContain('ECONNREFUSED');
    expect(first.cause).toBeInstanceOf(Error);
    expect(wasSent(first)).toBe(false);
    const send = vi.fn();
    await expect(connections.run('consume', 'dequeue', send)).rejects.toThrow(BrokerUnavailableError);
    expect(send).not.toHaveBeenCalled();
  });

  it('makes an enqueue wait until Redis is up', async () => {
    const port = await freePort();
    const connections = connectionsTo({ host: '127.0.0.1', port });
    const lost = signal<string>();
    connections.onStateChange((role, state) => lost.fire(`${role} ${state}`));
    const enqueued = connections.run('produce', 'enqueue', (client) => client.incr('n'));
    expect(await lost.fired).toBe('produce lost');
    await ownServer({ port });
    expect(await enqueued).toBe(1);
  });

  it('rejects an enqueue that was never sent after five seconds', async () => {
    const clock = new ManualClock();
    const connections = connectionsTo({ host: '127.0.0.1', port: await freePort() }, clock);
    const send = vi.fn();
    const call = failure(connections.run('produce', 'enqueue', send));
    const settled = vi.fn();
    void call.then(settled);
    const lost = signal();
    connections.onStateChange(() => lost.fire());
    await lost.fired;
    clock.advance(4_999);
    await setImmediate();
    expect(settled).not.toHaveBeenCalled();
    clock.advance(1);
    const error = await call;
    expect(error).toBeInstanceOf(BrokerUnavailableError);
    expect(wasSent(error)).toBe(false);
    expect(send).not.toHaveBeenCalled();
  });

  it('reports lost once per outage, and ready when it is over', async () => {
    const server = await ownServer();
    const connections = connectionsTo(server.url);
    const states: string[] = [];
    connections.onStateChange((role, state) => states.push(`${role} ${state}`));
    await connections.ready('consume');
    await server.kill();
    await vi.waitFor(() => expect(states).toEqual(['consume ready', 'consume lost']));
    await expect(connections.run('consume', 'x', (client) => client.ping())).rejects.toThrow(BrokerUnavailableError);
    await server.start();
    await vi.waitFor(() => expect(states).toEqual(['consume ready', 'consume lost', 'consume ready']));
    expect(await connections.run('consume', 'x', (client) => client.ping())).toBe('PONG');
  });

  it('waits for a server that is loading', async () => {
    const args = ['--key-load-delay', '100', '--loading-process-events-interval-bytes', '1024'];
    const server = await ownServer({ appendOnly: true, args });
    const observer = observe(server.port, { enableReadyCheck: false });
    await observer.call('EVAL', "for i = 1, 300000 do redis.call('SET', 'key' .. i, 'x') end", 0);
    await server.kill();
    const started = server.start();
    await vi.waitFor(async () => expect((await failure(observer.get('key1'))).message).toContain('LOADING'));
    const connections = connectionsTo(server.url, new ManualClock()); // else it waits for five seconds only
    const call = connections.run('produce', 'enqueue', (client) => client.incr('n'));
    await vi.waitFor(async () => expect(await namesOf(observer)).toHaveLength(1));
    await observer.config('SET', 'key-load-delay', '0'); // it would load for half a minute
    expect(await call).toBe(1);
    await started;
  });
});

describe('a command that was sent and got no reply', () => {
  it.each(ROLES)('is never sent again (%s)', async (role) => {
    const server = await ownServer();
    const observer = observe(server.port);
    const proxy = await startProxy(server.port);
    const connections = connectionsTo({ host: '127.0.0.1', port: proxy.port });
    await connections.ready(role);
    proxy.holdReplies();
    const call = failure(connections.run(role, 'work', (client) => client.incr('n')));
    await vi.waitFor(async () => expect(await observer.get('n')).toBe('1'));
    const back = signal();
    connections.onStateChange((_role, state) => state === 'ready' && back.fire());
    proxy.cut();
    const error = await call;
    expect(error).toBeInstanceOf(BrokerUnavailableError);
    expect(error.message).toBe('work: Redis is unavailable: the connection was lost before an answer came');
    expect(wasSent(error)).toBe(true);
    await back.fired;
    expect(await connections.run(role, 'GET', (client) => client.get('n'))).toBe('1');
  });

  it('is rejected when the peer stops responding, and the connection is replaced', async () => {
    const server = await ownServer();
    const connections = connectionsTo({ host: server.host, port: server.port, socketTimeout: 300 });
    await connections.ready('consume');
    process.kill(server.pid ?? 0, 'SIGSTOP');
    const error = await failure(connections.run('consume', 'dequeue', (client) => client.incr('n')));
    expect(error.message).toMatch(/dequeue: Redis is unavailable/);
    expect(wasSent(error)).toBe(true);
    const back = signal();
    connections.onStateChange((_role, state) => state === 'ready' && back.fire());
    process.kill(server.pid ?? 0, 'SIGCONT');
    await back.fired;
    expect(await connections.run('consume', 'x', (client) => client.ping())).toBe('PONG');
  });

  it('is not ambiguous when Redis replied with an error', async () => {
    const server = await ownServer();
    const observer = observe(server.port);
    await observer.lpush('list', 'x');
    const error = await failure(connectionsTo(server.url).run('produce', 'enqueue', (client) => client.incr('list')));
    expect(error).toBeInstanceOf(WrongKeyTypeError);
    expect(error.message).toMatch(/^enqueue: a key does not hold what asynq keeps in it: "list"\. Find out/);
    expect(wasSent(error)).toBe(false);
  });

  it('is retried by an enqueue, not by a fetch, when Redis refused to execute it', async () => {
    const server = await ownServer();
    const connections = connectionsTo(server.url);
    const refuse = () =>
      Object.assign(new Error('TRYAGAIN Multiple keys request during rehashing'), { name: 'ReplyError' });
    const send = vi.fn().mockRejectedValueOnce(refuse()).mockRejectedValueOnce(refuse()).mockResolvedValue('OK');
    expect(await connections.run('produce', 'enqueue', send)).toBe('OK');
    expect(send).toHaveBeenCalledTimes(3);
    const fetch = vi.fn().mockRejectedValue(refuse());
    await expect(connections.run('consume', 'dequeue', fetch)).rejects.toThrow(BrokerUnavailableError);
    expect(fetch).toHaveBeenCalledTimes(1);
  });

  it('is retried for five seconds', async () => {
    const server = await ownServer();
    const clock = new ManualClock();
    const connections = connectionsTo(server.url, clock);
    await connections.ready('produce');
    const send = vi.fn(() => {
      clock.advance(1_000);
      return Promise.reject(Object.assign(new Error('LOADING Redis is loading'), { name: 'ReplyError' }));
    });
    const call = failure(connections.run('produce', 'enqueue', send));
    while (clock.nextDue() === undefined) await setImmediate();
    for (let round = 0; round < 20; round++) {
      clock.moveTo(clock.nextDue() ?? clock.now());
      await setImmediate();
    }
    expect((await call).message).toContain('LOADING');
    expect(send.mock.calls.length).toBeGreaterThan(3);
    expect(send.mock.calls.length).toBeLessThanOrEqual(6);
  });

  it('does not change programming errors', async () => {
    const server = await ownServer();
    const fault = new TypeError('x is not a function');
    const call = connectionsTo(server.url).run('produce', 'enqueue', () => Promise.reject(fault));
    await expect(call).rejects.toBe(fault);
  });

  it('reconnects when the server has become a replica', async () => {
    const server = await ownServer();
    const other = await ownServer();
    const connections = connectionsTo(server.url);
    await connections.ready('consume');
    const observer = observe(server.port);
    const [before] = await clientsOf(observer);
    await observer.call('REPLICAOF', other.host, other.port);
    const error = await failure(connections.run('consume', 'dequeue', (client) => client.incr('n')));
    expect(error.message).toContain('READONLY');
    expect(wasSent(error)).toBe(false);
    await vi.waitFor(async () => {
      const now = (await clientsOf(observer)).filter(({ name }) => name === 'nestjs-asynq:consume');
      expect(now.map(({ id }) => id)).not.toEqual([]);
      expect(now.map(({ id }) => id)).not.toContain(before?.id);
    });
  });
});

describe('RedisConnections.close', () => {
  it('waits for the commands under way and leaves nothing open', async () => {
    const server = await ownServer();
    const observer = observe(server.port);
    await observer.ping();
    const connections = connectionsTo(server.url);
    await Promise.all(ROLES.map((role) => connections.ready(role)));
    const last = connections.run('consume', 'EVAL', (client) =>
      client.eval('for i = 1, 3000000 do end; return redis.call("INCR", "n")', 0),
    );
    await connections.close();
    expect(await last).toBe(1);
    expect(await namesOf(observer)).toEqual([]);
    observer.disconnect();
    await expectNoHandles();
    await expect(connections.run('produce', 'x', (client) => client.ping())).rejects.toThrow(ClosedError);
    await expect(connections.ready('consume')).rejects.toThrow(ClosedError);
  });

  it('works when nothing was connected, and twice', async () => {
    const connections = connectionsTo('redis://127.0.0.1:1');
    connections.command('produce');
    await connections.close();
    await connections.close();
    await expectNoHandles();
    await expect(connections.ready('consume')).rejects.toThrow(ClosedError);
  });

  it('works while disconnected, and rejects commands that wait', async () => {
    const clock = new ManualClock(); // whoever waits for it waits for ever
    const connections = connectionsTo({ host: '127.0.0.1', port: await freePort() }, clock);
    const lost = signal();
    connections.onStateChange(() => lost.fire());
    const waiting = failure(connections.run('produce', 'enqueue', (client) => client.ping()));
    await lost.fired;
    await connections.close();
    const error = await waiting;
    expect(error).toBeInstanceOf(ClosedError);
    expect(wasSent(error)).toBe(false);
    await expectNoHandles();
  });

  it('works while the first connection is made', async () => {
    const server = await ownServer();
    const observer = observe(server.port);
    await observer.ping();
    const connections = connectionsTo(server.url);
    const waiting = failure(connections.ready('consume'));
    await connections.close();
    expect(await waiting).toBeInstanceOf(ClosedError);
    await vi.waitFor(async () => expect(await namesOf(observer)).toEqual([]));
    observer.disconnect();
    await expectNoHandles();
  });

  it('is bounded when Redis does not reply any more', async () => {
    const server = await ownServer();
    const clock = new ManualClock();
    const connections = connectionsTo(server.url, clock);
    await connections.ready('consume');
    process.kill(server.pid ?? 0, 'SIGSTOP');
    const hanging = failure(connections.run('consume', 'x', (client) => client.ping()));
    const closed = connections.close();
    await setImmediate();
    clock.advance(3_000);
    await closed;
    expect(wasSent(await hanging)).toBe(true);
    process.kill(server.pid ?? 0, 'SIGCONT');
  });
});

describe('an ephemeral connection', () => {
  it('detects by itself that its peer has stopped responding', async () => {
    const server = await ownServer();
    const clock = new ManualClock();
    const connections = connectionsTo({ host: server.host, port: server.port, socketTimeout: 200 }, clock);
    const gone = signal<Error>();
    const { client } = await connections.open('test', gone.fire);
    await client.subscribe('channel');
    const pinged = vi.spyOn(client, 'ping');
    clock.advance(30_000);
    await Promise.all(pinged.mock.results.map(({ value }) => value as Promise<unknown>));
    expect(gone.values).toEqual([]);
    process.kill(server.pid ?? 0, 'SIGSTOP');
    clock.advance(10_000);
    expect((await gone.fired).message).toContain('Socket timeout');
    process.kill(server.pid ?? 0, 'SIGCONT');
    await vi.waitFor(() => expect(client.status).toBe('end'));
    expect(gone.values).toHaveLength(1);
  });

  it('does not call back when it is closed', async () => {
    const server = await ownServer();
    const gone = vi.fn();
    const connections = connectionsTo(server.url);
    await (await connections.open('test', gone)).close();
    await connections.open('other', gone);
    await connections.close();
    await expectNoHandles();
    expect(gone).not.toHaveBeenCalled();
  });
});

describe('reconnectDelay', () => {
  it('grows, has jitter from almost zero, and has a maximum', () => {
    const longest = (attempt: number) => Math.max(...Array.from({ length: 2_000 }, () => reconnectDelay(attempt)));
    const shortest = Math.min(...Array.from({ length: 2_000 }, () => reconnectDelay(10)));
    expect(shortest).toBeGreaterThanOrEqual(20);
    expect(shortest).toBeLessThan(300);
    expect(longest(1)).toBeLessThanOrEqual(100);
    expect(longest(4)).toBeGreaterThan(500);
    expect(longest(4)).toBeLessThanOrEqual(800);
    expect(longest(1_000_000)).toBeLessThanOrEqual(3_000);
  });
});
