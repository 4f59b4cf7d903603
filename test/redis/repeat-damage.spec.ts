import { describe, expect } from 'vitest';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { done } from '../contract/driver.js';
import { repeat } from '../support/messages.js';

/* What a waiting task of `latest` hangs on is lost: the next call mends it. */

const enqueue = async (driver: RedisDriver, id: string) =>
  (await driver.broker.uniqueness.enqueue('default', [repeat('latest', id)])).replies[0]!;

describe('a task that follows another', () => {
  it.for(['links', 'g:asynq:waiting', 'both'] as const)(
    'is notified though somebody has deleted what says so: %s',
    async (lost, { driver }) => {
      await enqueue(driver, 'a');
      const running = await driver.takeOne();
      await enqueue(driver, 'b');
      for (const name of lost === 'both' ? ['links', 'g:asynq:waiting'] : [lost]) {
        expect(await driver.redis.del(`asynq:{default}:${name}`)).toBe(1);
      }
      expect(await enqueue(driver, 'c')).toMatchObject({ status: 'replaced', owner: { id: 'b', state: 'waiting' } });
      expect(await driver.take(9)).toEqual([]);
      await driver.settle(done(running));
      const follower = await driver.takeOne();
      expect([follower.lease.id, String(follower.message.payload)]).toEqual(['b', 'c']);
    },
  );

  it.for(['after', 'w0'] as const)('runs when its own record is damaged: %s', async (field, { driver }) => {
    await enqueue(driver, 'a');
    await driver.takeOne();
    await enqueue(driver, 'b');
    await driver.redis.hset(driver.keys.task('b'), field, '?{');
    expect(await enqueue(driver, 'c')).toMatchObject({ status: 'replaced', owner: { id: 'b', state: 'pending' } });
    expect((await driver.takeOne()).lease.id).toBe('b');
  });

  it('runs when the one before it is gone without a trace', async ({ driver }) => {
    await enqueue(driver, 'a');
    await driver.takeOne();
    await enqueue(driver, 'b');
    await driver.redis.del(driver.keys.task('a'));
    expect(await enqueue(driver, 'c')).toMatchObject({ status: 'replaced', owner: { id: 'b', state: 'pending' } });
    expect((await driver.takeOne()).lease.id).toBe('b');
  });

  it('begins anew where the note of the one that runs is no text', async ({ driver }) => {
    await enqueue(driver, 'a');
    await driver.takeOne();
    await enqueue(driver, 'b');
    await driver.broker.administration.moveTasks('default', 'delete', ['b']);
    const [note] = await driver.redis.keys('asynq:{default}:followed:*');
    await driver.redis.del(note!);
    await driver.redis.hset(note!, 'x', 'y');
    expect(await enqueue(driver, 'c')).toEqual({ status: 'enqueued' });
  });
});
