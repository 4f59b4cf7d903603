import { describe, expect } from 'vitest';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { LinkSession } from '../contract/link-session.js';

const OTHER = new Keyspace().queue('other');
const CALLED = 'order~pay';

/** The task `order` sleeps until the one that it calls in another queue has ended, which is pending there. */
async function calling(driver: RedisDriver): Promise<LinkSession> {
  const session = new LinkSession(driver);
  const { lease } = await driver.takeNew({ id: 'order' });
  const made = request({ id: CALLED, queue: 'other' });
  const call = {
    step: 'pay',
    checkpoint: Buffer.from('{}\n'),
    answer: 'pay',
    queue: 'other',
    id: CALLED,
    request: made,
  };
  session.took((await driver.broker.checkpoints.call(lease, [call]))!);
  await driver.settle({ kind: 'sleep', lease, wakeAt: driver.now + 600, awaits: [{ answer: 'pay' }] });
  await session.relay();
  expect(await driver.redis.lrange(OTHER.pending, 0, '-1')).toEqual([CALLED]);
  return session;
}

describe("what asynq's inspector in Go does to a called task, the keeper finds:", () => {
  it('that it is deleted, and the caller is called again with that', async ({ driver }) => {
    const session = await calling(driver);
    await driver.redis.lrem(OTHER.pending, 0, CALLED);
    await driver.redis.del(OTHER.task(CALLED));
    await session.keep();
    expect(await driver.redis.hget(driver.keys.task('order'), 'answer:pay')).toContain('"ok":false');
    expect(await driver.redis.lrange(driver.keys.pending, 0, '-1')).toEqual(['order']);
  });

  it('that it is archived; run again and done, it has succeeded after all', async ({ driver }) => {
    const session = await calling(driver);
    await driver.redis.lrem(OTHER.pending, 0, CALLED);
    await driver.redis.zadd(OTHER.archived, driver.now, CALLED);
    await driver.redis.hset(OTHER.task(CALLED), 'state', 'archived');
    await session.keep();
    expect(await driver.redis.hget(driver.keys.task('order'), 'answer:pay')).toContain('"ok":false');
    expect(await driver.redis.lrange(driver.keys.pending, 0, '-1')).toEqual(['order']);
    await driver.redis.zrem(OTHER.archived, CALLED);
    await driver.redis.lpush(OTHER.pending, CALLED);
    await driver.redis.hset(OTHER.task(CALLED), 'state', 'pending');
    expect(await session.runNext('done', 'other')).toBe(CALLED);
    await session.relay();
    expect(await driver.redis.hget(driver.keys.task('order'), 'answer:pay')).toContain('"ok":true');
  });
});
