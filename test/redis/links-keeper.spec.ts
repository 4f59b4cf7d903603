import { describe, expect, vi } from 'vitest';
import type { LeasedTask } from '../../lib/broker/broker.js';
import { type Parcel, TECHNICAL_RETENTION } from '../../lib/broker/links.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import { encodeTaskMessage, decodeTaskMessage } from '../../lib/wire/codec.js';
import { LinkSession } from '../contract/link-session.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { request } from '../support/messages.js';

const A = { queue: 'default', id: 'a' };

type HowGoEnds = 'complete' | 'delete' | 'archive';

/** What a Go server does with the next task: it knows no links. */
async function go(driver: RedisDriver, how: HowGoEnds, at = driver.now): Promise<void> {
  await (
    await beginByGo(driver)
  )(how, at);
}

/** It takes the next task, whose message it has in hand then, until it ends it. */
async function beginByGo(driver: RedisDriver): Promise<(how: HowGoEnds, at?: number) => Promise<void>> {
  const task = await driver.takeOne();
  return (how, at = driver.now) => endByGo(driver, task, how, at);
}

async function endByGo(driver: RedisDriver, task: LeasedTask, how: HowGoEnds, at: number): Promise<void> {
  const { keys, redis } = driver;
  const { id } = task.lease;
  await redis.lrem(keys.active, 1, id);
  await redis.zrem(keys.lease, id);
  if (how === 'delete' || (how === 'complete' && task.message.retention === 0)) {
    await redis.del(keys.task(id));
    return;
  }
  const message = encodeTaskMessage({ ...task.message, errorMsg: how === 'archive' ? 'Go failed' : '' });
  await redis.hset(keys.task(id), 'msg', message, 'state', how === 'archive' ? 'archived' : 'completed');
  if (how === 'archive') await redis.zadd(keys.archived, at, id);
  else await redis.zadd(keys.completed, at + task.message.retention, id);
}

/** `b` waits for `a`, both in one queue. */
async function arrange(driver: RedisDriver, retention = 0): Promise<LinkSession> {
  const session = new LinkSession(driver);
  await driver.enqueue([request({ id: 'a', retention })]);
  expect(await session.enqueueAfter(session.waiting('b', [A]))).toBe('enqueued');
  return session;
}

/** Stores a parcel in the outbox of `default`. */
async function storeParcel({ redis, keys, now }: RedisDriver, { to, key, body }: Parcel): Promise<void> {
  const store = "redis.call('HSET', KEYS[1], ARGV[2], cmsgpack.pack({ ARGV[1], ARGV[3], '', tonumber(ARGV[4]) }))";
  await redis.eval(store, 1, keys.outbox, to, key, body, now);
}

describe('the keeper finds what a Go server has ended', () => {
  it.for([0, 60, 604_800])('a success, with a retention of %d seconds', async (retention, { driver }) => {
    const session = await arrange(driver, retention);
    await go(driver, 'complete');
    expect(await session.stateOf('b')).toBe('waiting');
    await driver.broker.links.keep('default', 5);
    expect(await session.stateOf('b')).toBe('pending');
    expect(await session.stateOf('a')).toBe(retention === 0 ? undefined : 'completed');
    expect(await driver.redis.zcard(driver.keys.completed)).toBe(retention === 0 ? 0 : 1);
  });

  it('by a clock that is nearly a minute off, among thousands of other tasks', async ({ driver }) => {
    const { redis, keys } = driver;
    const session = await arrange(driver);
    await driver.broker.links.keep('default', 5);
    const others = Array.from({ length: 2_000 }, (_, n) => request({ id: `o${n}`, type: 't' }));
    const marked = others.map((one) => ({ ...one, mark: { type: 't', key: one.message.id, rememberFor: 60 } }));
    await driver.broker.links.enqueue('default', marked);
    await go(driver, 'complete', driver.now - 55);
    await driver.broker.links.keep('default', 5);
    expect(await session.stateOf('b')).toBe('pending');
    expect(await redis.exists(keys.task('a'))).toBe(0);
  });

  it('a failure, with its error', async ({ driver }) => {
    const session = await arrange(driver);
    await go(driver, 'archive');
    await driver.broker.links.keep('default', 5);
    expect(await session.stateOf('b')).toBe('archived');
    expect(await session.errorOf('b')).toBe('asynq: prerequisite failed: task "a" of queue "default": Go failed');
    // A rerun, by Go as well, revives it.
    await driver.broker.administration.moveTasks('default', 'run', ['a']);
    await go(driver, 'complete');
    await driver.broker.links.keep('default', 5);
    expect(await session.stateOf('b')).toBe('pending');
  });

  it('a deletion', async ({ driver }) => {
    const session = await arrange(driver);
    await go(driver, 'delete');
    await driver.broker.links.keep('default', 5);
    expect(await session.stateOf('b')).toBe('archived');
    expect(await driver.redis.exists(driver.keys.links)).toBe(0);
  });

  it('a task that we tried first, from before it was watched', async ({ driver }) => {
    const session = new LinkSession(driver);
    await driver.add({ id: 'a' });
    const task = await driver.takeOne();
    await session.enqueueAfter(session.waiting('b', [A]));
    const retry = { kind: 'retry' as const, lease: task.lease, message: task.message, countAsFailure: true };
    await driver.exchange([{ ...retry, retryAt: driver.now }], 0);
    await driver.broker.maintenance.forward('default');
    const message = await driver.redis.hgetBuffer(driver.keys.task('a'), 'msg');
    expect(decodeTaskMessage(message!).retention).toBe(TECHNICAL_RETENTION);
    await go(driver, 'complete');
    await driver.broker.links.keep('default', 5);
    expect(await session.stateOf('b')).toBe('pending');
  });

  it.for([
    [undefined, 'archived'],
    ['failed', 'archived'],
    ['succeeded', 'pending'],
  ] as const)(
    'a task that Go was running when it was watched first, with missing: %s',
    async ([missing, state], { driver }) => {
      const session = new LinkSession(driver);
      await driver.add({ id: 'a' });
      const end = await beginByGo(driver);
      await session.enqueueAfter(session.waiting('b', [A]), missing);
      await session.enqueueAfter(session.waiting('c', [A]), missing);
      await end('complete');
      await driver.broker.links.keep('default', 5);
      expect([await session.stateOf('b'), await session.stateOf('c')]).toEqual([state, state]);
      if (state === 'archived')
        expect(await session.errorOf('b')).toMatch(/task "a" of queue "default": nobody saw its end/);
    },
  );

  it('the second attempt of a task that Go was running when it was watched first', async ({ driver }) => {
    const session = new LinkSession(driver);
    await driver.add({ id: 'a' });
    const end = await beginByGo(driver);
    await session.enqueueAfter(session.waiting('b', [A]));
    await end('archive');
    await driver.broker.links.keep('default', 5);
    expect(await session.errorOf('b')).toContain('Go failed');
    await driver.broker.administration.moveTasks('default', 'run', ['a']);
    await go(driver, 'complete');
    await driver.broker.links.keep('default', 5);
    expect(await session.stateOf('b')).toBe('pending');
  });

  it('a waiting task that Go ran by hand, and whose retry Go forwarded into its group', async ({ driver }) => {
    const { redis, keys, now } = driver;
    const session = await arrange(driver);
    await redis.zadd(keys.waitingTasks, now, 'b');
    await driver.broker.links.keep('default', 5);
    expect(await session.stateOf('b')).toBe('pending');
    expect(await redis.hget(keys.task('b'), 'group')).toBeNull();
  });

  it('a member of the set of waiting tasks that does not wait, or is none', async ({ driver }) => {
    const { redis, keys, now } = driver;
    await driver.enqueue([request({ id: 'p' })]);
    await redis.zadd(keys.waitingTasks, now, 'p', now, 'nobody');
    await redis.hset(keys.task('g'), { msg: 'm', state: 'aggregating', group: 'asynq:waiting' });
    await redis.zadd(keys.waitingTasks, now, 'g');
    await driver.broker.links.keep('default', 5);
    expect(await redis.exists(keys.waitingTasks)).toBe(0);
    expect(await redis.lrange(keys.pending, 0, -1)).toEqual(['g', 'p']);
  });
});

describe('the keeper of a place', () => {
  it('returns parcels when they are old enough, and drops what is none', async ({ driver }) => {
    const { redis, keys } = driver;
    const session = new LinkSession(driver);
    await session.enqueue(session.waiting('b', [{ type: 'pay', key: 'k' }]));
    await redis.hset(keys.outbox, 'damaged', 'no parcel');
    expect((await driver.broker.links.keep('default', 5)).parcels).toEqual([]);
    driver.clock.advance(5_000);
    const { parcels } = await driver.broker.links.keep('default', 5);
    expect(parcels).toEqual(session.sent);
    expect(await redis.hkeys(keys.outbox)).toEqual(parcels.map(({ key }) => key));
  });

  it('tries a parcel of a newer version once a minute, and hinders no other', async ({ driver }) => {
    const { links } = driver.broker;
    const events = new AsynqEvents();
    const failures: string[] = [];
    events.on('relayFailed', ({ error }) => failures.push(String(error)));
    const relay = new Relay(links, events);
    const session = new LinkSession(driver);
    await session.enqueue(session.waiting('b', [{ type: 'pay', key: 'k' }]));
    const [watch] = session.sent;
    await storeParcel(driver, { ...watch!, key: 'of the future', body: '{"kind":"future"}' });
    const pass = async (): Promise<number> => {
      driver.clock.advance(2_000);
      const { parcels } = await links.keep('default', 0);
      relay.carry({ parcels });
      await relay.idle();
      return parcels.length;
    };
    const passes: number[] = [];
    for (let n = 0; n < 90; n++) passes.push(await pass());
    expect(passes.filter((parcels) => parcels > 0)).toEqual([2, 1, 1]);
    expect(failures).toHaveLength(3);
    expect(failures[0]).toMatch(/"~pay" has got a parcel of the kind "future", which .* update all processes/);

    // After the update: somebody knows it, as though it were another.
    await storeParcel(driver, { ...watch!, key: 'of the future' });
    await pass();
    expect(failures).toHaveLength(3);
    expect(await driver.redis.exists(driver.keys.outbox)).toBe(0);
  });

  it('keeps a parcel that has changed since it was delivered', async ({ driver }) => {
    const session = new LinkSession(driver);
    await session.enqueue(session.marked('a', 'k'), session.marked('a2', 'k'));
    await session.runNext('archive');
    const [failure] = session.sent;
    await session.runNext();
    await driver.broker.links.acknowledge('default', [failure!]);
    expect(await driver.redis.hlen(driver.keys.outbox)).toBe(1);
    await driver.broker.links.acknowledge('default', session.sent.slice(1));
    expect(await driver.redis.exists(driver.keys.outbox)).toBe(0);
  });

  it('is found again when the list of places was lost', async ({ driver }) => {
    await arrange(driver);
    const { links } = driver.broker;
    expect(await links.places()).toEqual(['default']);
    await driver.redis.del(driver.keyspace.linked);
    expect(await links.places()).toEqual(['default']); // by those who have seen it there
    expect(await driver.redis.smembers(driver.keyspace.linked)).toEqual(['default']);
    await driver.redis.del(driver.keyspace.linked);
    const other = driver.open(driver.server.port);
    expect(await other.links.places()).toEqual([]);
    driver.clock.advance(900_000);
    expect(await other.links.places()).toEqual(['default']);
  });

  it('is found again when all was lost, by those who have seen it listed: others rely on having listed it', async ({
    driver,
  }) => {
    const session = await arrange(driver);
    const keeper = driver.open(driver.server.port);
    expect(await keeper.links.places()).toEqual(['default']);
    await driver.redis.flushall();
    expect(await keeper.links.places()).toEqual([]);
    await session.enqueue(session.marked('a', 'k'));
    expect(await driver.redis.exists(driver.keyspace.linked)).toBe(0);
    driver.clock.advance(30_000);
    expect(await keeper.links.places()).toEqual(['default']);
  });

  it('is forgotten by those who have seen it listed once it has had nothing to keep for a while', async ({
    driver,
  }) => {
    const session = await arrange(driver);
    await session.keep();
    await driver.redis.del(driver.keyspace.linked, driver.keys.links, driver.keys.waitingTasks);
    expect(await driver.broker.links.places()).toEqual([]);
    expect(await driver.redis.exists(driver.keyspace.linked)).toBe(0);
    const commands = vi.spyOn(RedisConnections.prototype, 'run');
    driver.clock.advance(121_000);
    await driver.broker.links.places();
    commands.mockClear();
    expect(await driver.broker.links.places()).toEqual([]);
    expect(commands.mock.calls.map(([, command]) => command)).toEqual(['SMEMBERS']);
    commands.mockRestore();
  });

  it('stays listed while another process relies on having listed it', async ({ driver }) => {
    const { links } = driver.broker;
    const session = await arrange(driver);
    await session.runNext();
    expect(await links.keep('default', 0)).toMatchObject({ empty: true });
    driver.clock.advance(60_000);
    expect(await links.keep('default', 0)).toMatchObject({ empty: true });
    expect(await links.places()).toEqual(['default']);
    driver.clock.advance(60_000);
    expect(await links.keep('default', 0)).toMatchObject({ empty: true });
    expect(await links.places()).toEqual([]);
    expect(await driver.redis.exists(driver.keys.linksProgress)).toBe(0);
  });

  it('is one at a time, until its lease is over', async ({ driver }) => {
    const { links } = driver.broker;
    expect(await links.lease('default', 'one', 60_000)).toBe(true);
    expect(await links.lease('default', 'two', 60_000)).toBe(false);
    driver.clock.advance(60_001);
    expect(await links.lease('default', 'two', 60_000)).toBe(true);
  });
});

/** `count` tasks that wait for one of the queue `other`, by its id or its key. */
async function manyAfter(driver: RedisDriver, by: 'task' | 'key', count: number, rememberFor = 86_400) {
  const session = new LinkSession(driver);
  const prerequisite = by === 'task' ? { queue: 'other', id: 'a' } : { type: 'pay', key: 'k' };
  await session.enqueue(session.marked('a', 'k', { queue: 'other' }, rememberFor));
  const ids = Array.from({ length: count }, (_, n) => `b${n}`);
  for (let first = 0; first < count; first += 500) {
    const some = ids.slice(first, first + 500);
    const requests = some.map((id) => ({ id: 'a', waiting: session.edge(id) }));
    if (by === 'task') await driver.broker.links.watch('other', requests);
    await session.enqueue(...some.map((id) => session.waiting(id, [prerequisite])));
  }
  await session.relay();
  return session;
}

describe('thousands that wait for one', () => {
  it.for(['task', 'key'] as const)(
    '%s: are told of its success though a failure is still being told, and a process dies',
    async (by, { driver }) => {
      const session = await manyAfter(driver, by, 3_000);
      const { links } = driver.broker;
      const carry = async (): Promise<readonly Parcel[]> => {
        const parcels = session.sent.splice(0);
        for (const parcel of parcels) session.took(await links.deliver(parcel.to, [parcel]));
        for (const parcel of parcels) await links.acknowledge(parcel.from, [parcel]);
        return session.sent.splice(0);
      };
      session.sent.length = 0;
      await session.runNext('archive', 'other');
      if (by === 'key') session.sent.push(...(await carry()));
      const failure = session.sent.find(({ key }) => key.includes('tell'))!;
      session.lose();
      await session.act('run', 'a', 'other');
      session.sent.length = 0;
      await session.runNext('done', 'other');
      if (by === 'key') await carry();
      session.lose(); // the process that tells the success dies
      await links.deliver(failure.to, [failure]); // the one that tells the failure lives
      await session.keep();
      expect(await driver.redis.llen(driver.keys.pending)).toBe(3_000);
      expect(await driver.redis.keys('*outbox')).toEqual([]);
    },
  );

  it('key: are all told though it is forgotten meanwhile', async ({ driver }) => {
    const session = await manyAfter(driver, 'key', 3_000, 1);
    const { links } = driver.broker;
    session.sent.length = 0;
    await session.runNext('done', 'other');
    const [mark] = session.sent;
    await links.deliver(mark!.to, [mark!]);
    await links.acknowledge(mark!.from, [mark!]);
    session.lose();
    driver.clock.advance(5_000);
    await session.keep();
    expect(await driver.redis.llen(driver.keys.pending)).toBe(3_000);
  });

  it.for(['task', 'key'] as const)('%s: are told in several steps, also of a rerun', async (by, { driver }) => {
    const session = new LinkSession(driver);
    const { links } = driver.broker;
    const prerequisite = by === 'task' ? { queue: 'other', id: 'a' } : { type: 'pay', key: 'k' };
    await session.enqueue(session.marked('a', 'k', { queue: 'other' }));
    const ids = Array.from({ length: 3_000 }, (_, n) => `b${n}`);
    for (let first = 0; first < ids.length; first += 500) {
      const some = ids.slice(first, first + 500);
      if (by === 'task')
        await links.watch(
          'other',
          some.map((id) => ({ id: 'a', waiting: session.edge(id) })),
        );
      await session.enqueue(...some.map((id) => session.waiting(id, [prerequisite])));
    }
    await session.relay();
    await session.runNext('archive', 'other');
    expect(session.sent.length).toBeLessThan(by === 'task' ? 1_500 : 7_000);
    await session.relay();
    expect(await driver.redis.zcard(driver.keys.archived)).toBe(3_000);
    await session.act('run', 'a', 'other');
    await session.runNext('done', 'other');
    await session.relay();
    expect(await driver.redis.llen(driver.keys.pending)).toBe(3_000);
    expect(await driver.redis.keys('*watchers*')).toEqual([]);
    expect(await driver.redis.keys('*waiters*')).toEqual([]);
    expect(await driver.redis.keys('*outbox')).toEqual([]);
  });

  it('in the same queue, too', async ({ driver }) => {
    const session = new LinkSession(driver);
    await driver.add({ id: 'a' });
    const ids = Array.from({ length: 5_000 }, (_, n) => `b${n}`);
    for (let first = 0; first < ids.length; first += 500) {
      const some = ids.slice(first, first + 500);
      const requests = some.map((id) => ({ id: 'a', waiting: session.edge(id) }));
      await driver.broker.links.watch('default', requests);
      await session.enqueue(...some.map((id) => session.waiting(id, [A])));
    }
    await session.runNext();
    await session.relay();
    expect(await driver.redis.llen(driver.keys.pending)).toBe(5_000);
    expect(await driver.redis.exists(driver.keys.links, driver.keys.outbox, driver.keys.waitingTasks)).toBe(0);
  });
});

describe('a Redis out of memory', () => {
  it('refuses what is delivered, so that it comes again', async ({ driver }) => {
    const session = new LinkSession(driver);
    await driver.add({ id: 'a', queue: 'other' });
    await session.watch(session.waiting('early', [{ queue: 'other', id: 'a' }]));
    await session.enqueue(session.waiting('b', [{ type: 'pay', key: 'k' }]));
    await session.runNext('done', 'other');
    expect(session.sent.map(({ key }) => key.split(' ')[1])).toEqual(['watchmark', 'edge']);
    await driver.redis.config('SET', 'maxmemory', '1');
    try {
      for (const parcel of session.sent) {
        await expect(driver.broker.links.deliver(parcel.to, [parcel])).rejects.toThrow(/OOM/);
      }
    } finally {
      await driver.redis.config('SET', 'maxmemory', '0');
    }
  });

  it('refuses new links as a whole, and still tells the end of a task', async ({ driver }) => {
    const { redis, broker } = driver;
    const session = await arrange(driver);
    await session.enqueue(session.waiting('c', [{ queue: 'default', id: 'a' }], { message: { queue: 'other' } }));
    await broker.links.watch('default', [{ id: 'a', waiting: session.edge('c', 'other') }]);
    const task = await driver.takeOne();
    const before = await driver.contents();
    await redis.config('SET', 'maxmemory', '1');
    try {
      await expect(session.enqueue(session.waiting('d', [A]))).rejects.toThrow(/OOM/);
      await expect(broker.links.watch('default', [{ id: 'a', waiting: session.edge('d', 'q') }])).rejects.toThrow(
        /OOM/,
      );
      expect(await driver.contents()).toEqual(before);
      await session.end(task, 'done');
    } finally {
      await redis.config('SET', 'maxmemory', '0');
    }
    expect(await session.stateOf('b')).toBe('pending');
    expect(session.sent).toHaveLength(1);
    await session.relay();
    expect(await session.stateOf('c', 'other')).toBe('pending');
  });
});
