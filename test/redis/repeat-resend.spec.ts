import { describe, expect, vi } from 'vitest';
import { Scripts } from '../../lib/broker/redis/scripts/scripts.js';
import type { RepeatReply, RepeatRequest } from '../../lib/broker/uniqueness.js';
import { BrokerUnavailableError, WrongKeyTypeError } from '../../lib/errors.js';
import { done } from '../contract/driver.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { repeat } from '../support/messages.js';
import { startProxy } from './proxy.js';

/**
 * Enqueues through a proxy that lets the call through, loses the reply and then the connection. In between `meanwhile` happens.
 */
async function resent(
  driver: RedisDriver,
  one: RepeatRequest,
  stored: () => Promise<boolean>,
  meanwhile: () => Promise<unknown>,
) {
  const proxy = await startProxy(driver.server.port);
  const { uniqueness } = driver.open(proxy.port);
  await uniqueness.describe('default', [one.repeat.lock]); // connects
  await uniqueness.enqueue('default', [repeat('reject', 'warm', { lock: 'warm' })]);
  await driver.broker.administration.moveTasks('default', 'delete', ['warm']);
  proxy.holdReplies();
  const call = uniqueness.enqueue('default', [one]);
  await expect.poll(stored).toBe(true);
  await meanwhile();
  proxy.cut();
  return (await call).replies;
}

const idsOf = async (driver: RedisDriver): Promise<string[]> => Object.keys((await driver.queue()).tasks).sort();

describe('a call that is sent again', () => {
  it('knows the task that it has changed, though that runs by now', async ({ driver }) => {
    await driver.broker.uniqueness.enqueue('default', [repeat('latest', 'a')]);
    const stored = async () => (await driver.redis.hget(driver.keys.task('a'), 'trigger')) === 'b';
    const replies = await resent(driver, repeat('latest', 'b'), stored, () => driver.take(1));
    expect(replies).toMatchObject([{ status: 'replaced', owner: { id: 'a', state: 'active' } }]);
    expect(await idsOf(driver)).toEqual(['a']);
  });

  it('knows the task that follows', async ({ driver }) => {
    await driver.broker.uniqueness.enqueue('default', [repeat('latest', 'a')]);
    await driver.take(1);
    const { run } = Scripts.prototype;
    let calls = 0;
    const spy = vi.spyOn(Scripts.prototype, 'run').mockImplementation(async function (this: Scripts, ...call) {
      const reply = await run.apply(this, call);
      if (call[1] === 'enqueueUniqueLinked' && ++calls === 1) throw new BrokerUnavailableError('the reply was lost');
      return reply;
    });
    const { replies } = await driver.broker.uniqueness.enqueue('default', [repeat('latest', 'b')]);
    spy.mockRestore();
    expect(calls).toBe(1); // sent again, it finds the one that it has created
    expect(replies).toMatchObject([{ status: 'enqueued', owner: { id: 'b', state: 'waiting' } }]);
    expect(await idsOf(driver)).toEqual(['a', 'b']);
  });

  it('leaves the task that it has superseded marked', async ({ driver }) => {
    await driver.broker.uniqueness.enqueue('default', [repeat('supersede', 'a')]);
    await driver.take(1);
    const stored = async () => (await driver.redis.exists(driver.keys.task('b'))) === 1;
    const replies = await resent(driver, repeat('supersede', 'b'), stored, () => driver.take(1));
    expect(replies).toEqual([{ status: 'enqueued' }]);
    expect(await driver.broker.uniqueness.findSuperseded('default', ['a', 'b'])).toEqual(['b', undefined]);
    expect(await idsOf(driver)).toEqual(['a', 'b']);
  });

  it.for(['existing', 'reject', 'replace'] as const)(
    'knows the task that has run and is gone by the lock that only time ends: %s',
    async (policy, { driver }) => {
      const stored = async () => (await driver.redis.exists(driver.keys.task('a'))) === 1;
      const replies = await resent(driver, repeat(policy, 'a', { released: false }), stored, async () => {
        await driver.settle(done(await driver.takeOne()));
        expect(await idsOf(driver)).toEqual([]);
      });
      expect(replies).toEqual([{ status: 'enqueued' }]);
      expect(await idsOf(driver)).toEqual([]);
    },
  );

  it('knows the task that is to run once', async ({ driver }) => {
    const stored = async () => (await driver.redis.exists(driver.keys.task('once-one'))) === 1;
    const replies = await resent(driver, repeat('once', 'a'), stored, () => driver.take(1));
    expect(replies).toEqual([{ status: 'enqueued' }]);
  });
});

describe('a task that is to run once', () => {
  it('is created where only a late result of Go is left', async ({ driver }) => {
    await driver.redis.hset(driver.keys.task('once-one'), 'result', 'late');
    const { replies } = await driver.broker.uniqueness.enqueue('default', [repeat('once'), repeat('once')]);
    expect(replies).toMatchObject([{ status: 'enqueued' }, { status: 'existing' }]);
    expect(await driver.redis.hexists(driver.keys.task('once-one'), 'result')).toBe(0);
    expect((await driver.takeOne()).lease.id).toBe('once-one');
  });

  it('is refused, with all of its call, where its key has another type', async ({ driver }) => {
    await driver.redis.set(driver.keys.task('once-one'), 'text');
    const call = driver.broker.uniqueness.enqueue('default', [
      repeat('existing', 'a', { lock: 'two' }),
      repeat('once'),
    ]);
    await expect(call).rejects.toThrow(WrongKeyTypeError);
    expect(await driver.redis.exists(driver.keys.task('a'))).toBe(0);
  });
});

describe('a lock of another type', () => {
  it('fails its whole call, also beside locks that are held or free', async ({ driver }) => {
    const wrong = repeat('existing', 'b', { lock: 'wrong' });
    await driver.broker.uniqueness.enqueue('default', [repeat('existing', 'a', { lock: 'held' })]);
    await driver.redis.lpush(wrong.repeat.lock, 'text');
    const locks = ['free', 'held'].map((lock) => repeat('existing', lock, { lock }));
    await expect(driver.broker.uniqueness.enqueue('default', [...locks, wrong])).rejects.toThrow(WrongKeyTypeError);
    expect(await driver.redis.exists(...['free', 'held', 'b'].map((id) => driver.keys.task(id)))).toBe(0);
    expect(await driver.redis.type(wrong.repeat.lock)).toBe('list');
  });
});

describe('two processes', () => {
  it.for(['reject', 'existing', 'latest', 'once'] as const)(
    'that race create one task: %s',
    async (policy, { driver }) => {
      const brokers = [driver.open(driver.server.port), driver.open(driver.server.port)];
      const calls = Array.from({ length: 40 }, (_, n) =>
        brokers[n % 2]!.uniqueness.enqueue('default', [repeat(policy, `t${n}`)]),
      );
      const statuses = (await Promise.all(calls)).map(({ replies }) => (replies[0] as RepeatReply).status);
      expect(statuses.filter((status) => status === 'enqueued')).toHaveLength(1);
      expect(await idsOf(driver)).toHaveLength(1);
    },
  );
});
