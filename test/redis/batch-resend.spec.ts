import { describe, expect } from 'vitest';
import { BatchSession, HOME } from '../contract/batch-session.js';
import { it } from '../contract/redis-fixture.js';
import { startProxy } from './proxy.js';

describe('members of a batch', () => {
  it('are created once when the reply to their call is lost', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    const proxy = await startProxy(driver.server.port);
    const broker = driver.open(proxy.port);
    await session.add(batch, 1);
    const warm = await session.reserve(batch, 1);
    await broker.batches.add(warm, session.members(warm));
    const chunk = await session.reserve(batch, 9);
    const unique = session.members(chunk, {
      message: { uniqueKey: driver.keys.unique('m', undefined) },
      uniqueTtl: 60,
    });
    const mixed = session.members(chunk).map((one, index) => (index < 2 ? unique[index]! : one));
    proxy.holdReplies();
    const added = broker.batches.add(chunk, mixed);
    await expect.poll(() => driver.redis.llen(driver.keys.pending)).toBe(10);
    await driver.take(10);
    proxy.cut();
    const { status, statuses } = await added;
    expect(status).toBe('added');
    expect(statuses).toEqual(['enqueued', 'duplicate', ...Array(7).fill('enqueued')]);
    expect(await driver.redis.llen(driver.keys.pending)).toBe(0);
  });

  it('that are others are not taken for them when Redis has lost that it gave their numbers away', async ({
    driver,
  }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    const before = await driver.redis.dumpBuffer(driver.keyspace.queue(HOME).batch(batch));
    await session.add(batch, 9);
    await driver.redis.restore(driver.keyspace.queue(HOME).batch(batch), 0, before, 'REPLACE');
    const chunk = await session.reserve(batch, 9);
    expect(await session.create(chunk)).toEqual(Array(9).fill('conflict'));
    await session.confirm(chunk, 0);
    await session.add(batch, 9);
    await session.close(batch);
    await session.run(9);
    expect(await session.callbacks(batch)).toEqual([]);
    await session.run(9);
    expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
  });
});
