import { describe, expect, vi } from 'vitest';
import { Scripts } from '../../lib/broker/redis/scripts/scripts.js';
import { WrongKeyTypeError } from '../../lib/errors.js';
import { done } from '../contract/driver.js';
import { it } from '../contract/redis-fixture.js';

/** How many writes each call has that `work` causes. */
async function callsOf(work: () => Promise<unknown>): Promise<number[]> {
  const run = vi.spyOn(Scripts.prototype, 'run');
  await work();
  const calls = run.mock.calls.filter(([, name]) => name === 'writeFields');
  run.mockRestore();
  return calls.map(([, , keys]) => keys.length - 1);
}

describe('steps and results that are stored side by side', () => {
  it('go in one call, and each knows whether it was stored', async ({ driver }) => {
    const { broker, redis, keys } = driver;
    const [one, two, over, other] = await driver.takeNewMany(4);
    await driver.settle(done(over!));
    const stolen = { ...other!.lease, expiresAt: other!.lease.expiresAt - 3 };
    const written: boolean[] = [];
    const calls = await callsOf(async () => {
      const value = Buffer.from('1');
      const writes = [
        broker.checkpoints.write(one!.lease, 'a', value),
        broker.checkpoints.write(over!.lease, 'a', value),
        broker.checkpoints.write(one!.lease, 'b', Buffer.from('2')),
        broker.checkpoints.write(stolen, 'a', value),
        broker.consumer.writeResult(two!.lease, value),
      ];
      written.push(...(await Promise.all(writes)));
    });
    expect(calls).toEqual([5]);
    expect(written).toEqual([true, false, true, false, true]);
    expect(await redis.hmget(keys.task(one!.lease.id), 'did:a', 'did:b')).toEqual(['1', '2']);
    expect(await redis.hget(keys.task(two!.lease.id), 'result')).toBe('1');
    expect(await redis.hexists(keys.task(other!.lease.id), 'did:a')).toBe(0);
    expect(await redis.exists(keys.task(over!.lease.id))).toBe(0);
  });

  it('do not fail because another has a damaged task', async ({ driver }) => {
    const { broker, redis, keys } = driver;
    const [one, damaged] = await driver.takeNewMany(2);
    await redis.set(keys.task(damaged!.lease.id), 'no hash');
    const writes = [damaged!, one!].map(({ lease }) => broker.checkpoints.write(lease, 'a', Buffer.from('1')));
    const [first, second] = await Promise.allSettled(writes);
    expect(first).toMatchObject({ status: 'rejected', reason: expect.any(WrongKeyTypeError) });
    expect(second).toEqual({ status: 'fulfilled', value: true });
    expect(await redis.get(keys.task(damaged!.lease.id))).toBe('no hash');
  });

  it('are several calls when they are many, or large', async ({ driver }) => {
    const { broker } = driver;
    const tasks = await driver.takeNewMany(150);
    const store = (some: typeof tasks, size: number) => () =>
      Promise.all(some.map(({ lease }) => broker.checkpoints.write(lease, 'a', Buffer.alloc(size))));
    expect(await callsOf(store(tasks, 1))).toEqual([100, 50]);
    expect(await callsOf(store(tasks.slice(0, 5), 400 * 1024))).toEqual([2, 2, 1]);
  });
});
