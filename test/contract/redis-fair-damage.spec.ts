import { describe, expect } from 'vitest';
import type { LeasedTask } from '../../lib/broker/broker.js';
import { FAIRNESS_HEADER } from '../../lib/wire/fairness.js';
import { WrongKeyTypeError } from '../../lib/errors.js';
import { fairHeader, request } from '../support/messages.js';
import { done } from './driver.js';
import { it, type RedisDriver } from './redis-fixture.js';

const ids = (tasks: readonly LeasedTask[]): string[] => tasks.map(({ lease }) => lease.id);

/** Tasks of two keys, one of which may run one at a time. */
async function fill(driver: RedisDriver): Promise<void> {
  driver.broker.fairQueues.add('default');
  const limited = fairHeader('b', { concurrency: 1 });
  await driver.enqueue([
    ...['a-1', 'a-2', 'a-3'].map((id) => request({ id, headers: fairHeader('a') })),
    ...['b-1', 'b-2', 'b-3'].map((id) => request({ id, headers: limited })),
  ]);
}

/** Takes and ends all, key by key of the clock; returns what has run. */
async function work(driver: RedisDriver): Promise<string[]> {
  const ran: string[] = [];
  for (let round = 0; round < 12; round++) {
    driver.clock.advance(2_000);
    const tasks = await driver.take(9);
    ran.push(...ids(tasks));
    if (tasks.length > 0) await driver.settle(...tasks.map(done));
  }
  return ran.sort();
}

const ALL = ['a-1', 'a-2', 'a-3', 'b-1', 'b-2', 'b-3'];

describe('a fair queue that is damaged', () => {
  it.for(['fairShares', 'fairSlots', 'fairTotal'] as const)('runs all without %s', async (name, { driver }) => {
    await fill(driver);
    await driver.take(1);
    const ended = await driver.take(9);
    await driver.settle(...ended.map(done));
    await driver.redis.del(driver.keys[name]);
    driver.clock.advance(60_000);
    const { tasks } = await driver.broker.maintenance.listExpiredLeases('default', driver.now, 9);
    await driver.settle(...tasks.map(done));
    expect(await work(driver)).toEqual(['b-2', 'b-3']);
    expect(await driver.redis.keys('asynq:{default}:fair*')).toEqual([]);
  });

  it.for(['fairRing', 'fairHeld'] as const)('finds its lines again without %s', async (name, { driver }) => {
    await fill(driver);
    const taken = name === 'fairHeld' ? await driver.take(9) : [];
    await driver.redis.del(driver.keys[name]);
    expect(await driver.broker.maintenance.repairLines('default')).toBe(name === 'fairRing' ? 2 : 1);
    expect(await driver.broker.maintenance.repairLines('default')).toBe(0);
    if (taken.length > 0) await driver.settle(...taken.map(done));
    expect(await work(driver)).toEqual(name === 'fairRing' ? ALL : ['b-2', 'b-3']);
  });

  it('counts its tasks again when Go has deleted some', async ({ driver }) => {
    await fill(driver);
    const line = driver.keys.fairLinePrefix + 'a';
    await driver.redis.zrem(line, 'a-1', 'a-2');
    await driver.redis.del(driver.keys.task('a-1'), driver.keys.task('a-2'));
    const pending = async () => (await driver.broker.inspection.describeQueue('default')).pending;
    expect(await pending()).toBe(6);
    await driver.broker.maintenance.repairLines('default');
    expect(await pending()).toBe(4);
    await driver.redis.del(driver.keys.fairTotal);
    await driver.broker.maintenance.repairLines('default');
    expect(await pending()).toBe(4);
  });

  it('counts the tasks of many keys again in steps', async ({ driver }) => {
    driver.broker.fairQueues.add('default');
    for (let first = 0; first < 5_200; first += 400) {
      const names = Array.from({ length: 400 }, (_, index) => `k${first + index}`);
      await driver.enqueue(names.map((name) => request({ headers: fairHeader(name) })));
    }
    const pending = async () => (await driver.broker.inspection.describeQueue('default')).pending;
    await driver.redis.incrby(driver.keys.fairTotal, 70);
    await driver.broker.maintenance.repairLines('default');
    expect(await pending()).toBe(5_200);
    await driver.redis.decrby(driver.keys.fairTotal, 70);
    await driver.broker.maintenance.repairLines('default');
    expect(await pending()).toBe(5_200);
  });

  it.for(['fairRing', 'fairHeld', 'fairShares', 'fairSlots'] as const)(
    'refuses %s of another type',
    async (name, { driver }) => {
      await fill(driver);
      await driver.redis.del(driver.keys[name]);
      await driver.redis.set(driver.keys[name], 'x');
      const before = await driver.contents();
      await expect(driver.take(9)).rejects.toBeInstanceOf(WrongKeyTypeError);
      await expect(driver.enqueue([request({ headers: fairHeader('a') })])).rejects.toBeInstanceOf(WrongKeyTypeError);
      expect(await driver.contents()).toEqual(before);
    },
  );

  it('goes on beside lines and slots of another type', async ({ driver }) => {
    await fill(driver);
    await driver.redis.del(`${driver.keys.fairLinePrefix}a`);
    await driver.redis.set(`${driver.keys.fairLinePrefix}a`, 'x');
    await driver.redis.set(`${driver.keys.fairRunningPrefix}b`, 'x');
    await driver.redis.set(driver.keys.fairTotal, 'many');
    await driver.enqueue([request({ id: 'a-4', headers: fairHeader('a') })]);
    expect(await work(driver)).toEqual(['a-4', 'b-1', 'b-2', 'b-3']);
  });

  it.for(['', '1', '1 0 0 0 ', 'x 0 0 1 a', '-1 0 0 1 a', 'nan 0 0 1 a', 'inf 0 0 1 a', '1e999 0 0 1 a'])(
    'takes a task with the share "%s" for one without a key',
    async (text, { driver }) => {
      driver.broker.fairQueues.add('default');
      await driver.enqueue([request({ id: 'odd', headers: { [FAIRNESS_HEADER]: text } }), request({ id: 'n' })]);
      const [one] = await driver.take(1);
      await driver.settle({ kind: 'requeue', lease: one!.lease });
      expect(await driver.redis.zrange(driver.keys.fairRing, '0', '-1')).toEqual(['']);
      expect(await work(driver)).toEqual(['n', 'odd']);
    },
  );

  it('is no group that an aggregator finds', async ({ driver }) => {
    await fill(driver);
    await driver.redis.zadd(driver.keys.waitingTasks, '1', 'w');
    expect(await driver.broker.groups.repairGroups('default')).toEqual({ listed: 0, removed: 0 });
    expect(await driver.redis.smembers(driver.keys.groups)).toEqual([]);
  });

  it('begins anew when all is lost', async ({ driver }) => {
    await fill(driver);
    const tasks = await driver.take(9);
    await driver.redis.flushall();
    expect(await driver.settle({ kind: 'requeue', lease: tasks[0]!.lease })).toEqual(['lost']);
    await fill(driver);
    expect(await work(driver)).toEqual(ALL);
  });
});
