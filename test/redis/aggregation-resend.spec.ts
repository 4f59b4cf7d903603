import { describe, expect } from 'vitest';
import type { LinkedRequest } from '../../lib/broker/links.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { request } from '../support/messages.js';
import { startProxy } from './proxy.js';

/**
 * Finishes a set of one task through a proxy that lets the call through, loses the reply and then
 * the connection.
 */
async function finishTwice(
  driver: RedisDriver,
  made: LinkedRequest | undefined,
  between: () => Promise<unknown> = async () => undefined,
) {
  const proxy = await startProxy(driver.server.port);
  const broker = driver.open(proxy.port);
  const uniqueKey = driver.keys.unique('part', undefined);
  // Redis must know the script first.
  const none = { queue: 'default', group: 'g', key: 'asynq:{default}:g:g:none', deadline: 0, tasks: [], damaged: [] };
  expect(await broker.groups.finishSet(none, undefined)).toEqual({ status: 'lost' });
  await broker.producer.enqueue('default', [request({ id: 'part', groupKey: 'g', uniqueKey }, { uniqueTtl: 60 })]);
  const policy = { gracePeriod: 0, maxDelay: 0, maxSize: 0 };
  const { sets } = await broker.groups.claimDueSets('default', () => policy, 1);
  const set = await broker.groups.readSet(sets[0]!);
  await broker.links.watch('default', []); // lists the queue for the keepers, once
  proxy.holdReplies();
  const finished = broker.groups.finishSet(set, made);
  await expect.poll(() => driver.redis.exists(driver.keys.task('part'))).toBe(0);
  await between();
  proxy.cut();
  return (await finished).status;
}

describe('a set whose finishing call gets no reply', () => {
  it.for<readonly [string, LinkedRequest]>([
    ['pending', request({ id: 'whole' })],
    [
      'unique, with the lock of a member',
      request({ id: 'whole', uniqueKey: 'asynq:{default}:unique:part:' }, { uniqueTtl: 9 }),
    ],
    [
      'waiting',
      {
        ...request({ id: 'whole' }),
        wait: { prerequisites: [{ type: 'a', key: 'k' }], onFailure: 'cancel', onTimeout: 'archive', deadline: 2e9 },
      },
    ],
    ['scheduled', request({ id: 'whole', groupKey: 'h' }, { processAt: 2 ** 32 })],
  ])('was finished nevertheless: a task that is %s', async ([_, made], { driver }) => {
    expect(await finishTwice(driver, made)).toBe('finished');
    const tasks = await driver.redis.keys(driver.keys.task('*'));
    expect(tasks).toEqual([driver.keys.task('whole')]);
  });

  it('counts as lost when the new task has changed since, and nothing is created twice', async ({ driver }) => {
    const run = async () => driver.redis.del(driver.keys.task('whole'), driver.keys.pending);
    expect(await finishTwice(driver, request({ id: 'whole' }), run)).toBe('lost');
    expect(await driver.redis.exists(driver.keys.task('whole'), driver.keys.pending)).toBe(0);
  });

  it('is gone when it was only to be deleted', async ({ driver }) => {
    expect(await finishTwice(driver, undefined)).toBe('lost');
    expect(await driver.redis.keys('asynq:{default}:*')).toEqual([]);
  });
});

it('a set is read again when the connection is lost before its reply has come', async ({ driver }) => {
  const proxy = await startProxy(driver.server.port);
  const broker = driver.open(proxy.port);
  const policy = { gracePeriod: 0, maxDelay: 0, maxSize: 0 };
  await broker.producer.enqueue('default', [request({ id: 'part', groupKey: 'g' })]);
  const { sets } = await broker.groups.claimDueSets('default', () => policy, 1);
  await broker.groups.readSet(sets[0]!); // Redis knows the script
  const calls = async () => Number(/^cmdstat_zrange:calls=(\d+)/m.exec(await driver.redis.info('commandstats'))?.[1]);
  const before = await calls();
  proxy.holdReplies();
  const read = broker.groups.readSet(sets[0]!);
  await expect.poll(calls).toBeGreaterThan(before);
  proxy.cut();
  expect((await read).tasks).toMatchObject([{ id: 'part' }]);
});
