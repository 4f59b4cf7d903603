import { describe, expect } from 'vitest';
import type { Settlement } from '../../lib/broker/broker.js';
import { it, type RedisDriver } from './redis-fixture.js';

async function hold(driver: RedisDriver, ids: readonly string[]): Promise<void> {
  for (const id of ids) await driver.add({ id });
  const tasks = await driver.take(ids.length);
  await driver.settle(...tasks.map(({ lease }): Settlement => ({ kind: 'wait', lease, waitlist: 'w' })));
}

/** As asynq's RunTask and forward: they do not know `held`. */
async function runAsGo({ redis, keys }: RedisDriver, id: string): Promise<void> {
  await redis.zrem(keys.retry, id);
  await redis.lpush(keys.pending, id);
  await redis.hset(keys.task(id), 'state', 'pending');
}

const numbers = ({ broker }: RedisDriver) => broker.inspection.describeQueue('default');
const listed = async ({ broker }: RedisDriver) =>
  (await broker.listing.listTasks('default', { state: 'held', size: 99 })).tasks.map(({ message }) => message.id);

describe('tasks that are held, and that Go has moved', () => {
  it('are not listed, and never counted beyond what is in retry', async ({ driver }) => {
    await hold(driver, ['a', 'b', 'c']);
    driver.clock.advance(5_000);
    await runAsGo(driver, 'a');
    expect(await listed(driver)).toEqual(['b', 'c']);
    expect(await numbers(driver)).toMatchObject({ held: 2, retry: 0, pending: 1, oldestHeld: 5_000 });
    expect((await driver.broker.inspection.getTask('default', 'a'))?.state).toBe('pending');
    for (const id of ['b', 'c']) await runAsGo(driver, id);
    expect(await listed(driver)).toEqual([]);
    expect(await numbers(driver)).toMatchObject({ held: 0, retry: 0, pending: 3, oldestHeld: 0 });
  });

  it('leave nothing behind when their turn comes', async ({ driver }) => {
    await hold(driver, ['a', 'b']);
    await runAsGo(driver, 'a');
    expect(await driver.broker.limiting.wakeWaiting('default', 'w', 1)).toEqual({ woken: 1, left: 0 });
    expect(await driver.redis.exists(driver.keys.held, driver.keys.waiting('w'))).toBe(0);
  });

  it('are known though an older version has put them there, which did not note by what', async ({ driver }) => {
    await hold(driver, ['a']);
    await driver.redis.hdel(driver.keys.task('a'), 'held_by');
    expect(await driver.broker.inspection.getTask('default', 'a')).toMatchObject({
      state: 'held',
      held: { waitlist: '' },
    });
    expect(await driver.broker.obstacles.position('default', 'a')).toMatchObject({
      waitlist: { name: undefined, ahead: 0 },
    });
  });
});
