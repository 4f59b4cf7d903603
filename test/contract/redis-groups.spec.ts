import { describe, expect } from 'vitest';
import { AGGREGATION_SECONDS, type ClaimedSet } from '../../lib/broker/groups.js';
import { WrongKeyTypeError } from '../../lib/errors.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import { it, type RedisDriver } from './redis-fixture.js';

const AT_ONCE = { gracePeriod: 0, maxDelay: 0, maxSize: 0 };

async function claim(driver: RedisDriver): Promise<ClaimedSet[]> {
  return (await driver.broker.groups.claimDueSets('default', () => AT_ONCE, 100)).sets;
}

async function join(driver: RedisDriver, group: string, ...ids: string[]): Promise<void> {
  for (const id of ids) await driver.add({ id, groupKey: group });
}

describe('a set is kept as asynq keeps it', () => {
  it('with the name of its group and a UUID, listed with its deadline', async ({ driver }) => {
    await join(driver, 'a:b', '1');
    const [set] = await claim(driver);
    expect(set!.key).toMatch(/^asynq:\{default\}:g:a:b:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    const listed = await driver.redis.zrange(driver.keys.aggregationSets, '0', '-1', 'WITHSCORES');
    expect(listed).toEqual([set!.key, String(driver.now + AGGREGATION_SECONDS)]);
    expect(await driver.redis.zrange(set!.key, '0', '-1', 'WITHSCORES')).toEqual(['1', String(driver.now)]);
  });
});

describe('damage in a claimed set', () => {
  it('is left out when its message is missing; otherwise it is reported and archived unchanged', async ({ driver }) => {
    await join(driver, 'g', 'broken', 'foreign', 'fine', 'missing', 'stub');
    await driver.redis.hset(driver.keys.task('broken'), 'msg', Buffer.from([0xff, 0xff]));
    await driver.redis.hset(driver.keys.task('foreign'), 'msg', '');
    await driver.redis.del(driver.keys.task('missing'));
    await driver.redis.hdel(driver.keys.task('stub'), 'msg');
    const [claimed] = await claim(driver);
    const set = await driver.broker.groups.readSet(claimed!);
    expect(set.tasks.map(({ id }) => id)).toEqual(['fine']);
    expect(set.damaged.map(({ id }) => id)).toEqual(['broken', 'foreign']);
    expect(await driver.broker.groups.archiveDamagedMembers(set, ['broken', 'foreign'])).toBe(2);
    expect(await driver.redis.hget(driver.keys.task('broken'), 'state')).toBe('archived');
    expect(await driver.broker.groups.finishSet(set, request())).toEqual({ status: 'finished' });
    expect(await driver.redis.zrange(driver.keys.archived, '0', '-1')).toEqual(['broken', 'foreign']);
    const left = await driver.redis.keys(driver.keys.task('*'));
    expect(left.filter((key) => /:(fine|missing|stub)$/.test(key))).toEqual([]);
  });

  it('does not return to the group', async ({ driver }) => {
    await join(driver, 'g', 'fine', 'missing', 'stub');
    await driver.redis.del(driver.keys.task('missing'));
    await driver.redis.hdel(driver.keys.task('stub'), 'msg');
    await claim(driver);
    driver.clock.advance(AGGREGATION_SECONDS * 1000);
    expect(await driver.broker.groups.reclaimStaleSets('default')).toBe(1);
    expect(await driver.redis.zrange(driver.keys.group('g'), '0', '-1')).toEqual(['fine']);
    expect(await driver.redis.exists(driver.keys.task('stub'))).toBe(0);
  });

  it('does not release a lock of another queue that a message names', async ({ driver }) => {
    const foreign = new Keyspace().queue('other').unique('t', undefined);
    await driver.redis.set(foreign, 'a');
    await join(driver, 'g');
    await driver.add({ id: 'a', groupKey: 'g', uniqueKey: foreign }, { uniqueTtl: undefined });
    const [claimed] = await claim(driver);
    expect(await driver.broker.groups.finishSet(await driver.broker.groups.readSet(claimed!), undefined)).toEqual({
      status: 'finished',
    });
    expect(await driver.redis.get(foreign)).toBe('a');
  });
});

describe('the list of sets', () => {
  it('loses entries that cannot be sets of the queue, and the others are reclaimed', async ({ driver }) => {
    await join(driver, 'g', 'a');
    await claim(driver);
    const { aggregationSets, groupPrefix, pending } = driver.keys;
    await driver.redis.set(`${groupPrefix}text:1`, 'x');
    const strange = [
      'junk',
      pending,
      groupPrefix,
      `${groupPrefix}`.slice(0, -1),
      `${groupPrefix}text:1`,
      `${groupPrefix}gone:1`,
    ];
    for (const name of strange) await driver.redis.zadd(aggregationSets, 1, name);
    driver.clock.advance(AGGREGATION_SECONDS * 1000);
    expect(await driver.broker.groups.reclaimStaleSets('default')).toBe(1);
    expect(await driver.redis.exists(aggregationSets)).toBe(0);
    expect(await driver.redis.get(`${groupPrefix}text:1`)).toBe('x');
  });

  it('keeps a set whose group is a key of another type, and continues with the next', async ({ driver }) => {
    await join(driver, 'a', '1');
    await join(driver, 'b', '2');
    await claim(driver);
    await driver.redis.set(driver.keys.group('a'), 'x');
    driver.clock.advance(AGGREGATION_SECONDS * 1000);
    expect(await driver.broker.groups.reclaimStaleSets('default')).toBe(1);
    expect(await driver.redis.zrange(driver.keys.group('b'), '0', '-1')).toEqual(['2']);
    await driver.redis.del(driver.keys.group('a'));
    driver.clock.advance(3600_000);
    expect(await driver.broker.groups.reclaimStaleSets('default')).toBe(1);
    expect(await driver.redis.smembers(driver.keys.groups)).toEqual(expect.arrayContaining(['a', 'b']));
  });
});

describe('groups that Go has left unlisted, or listed empty', () => {
  it('are repaired, and claimed sets stay as they are', async ({ driver }) => {
    await join(driver, 'g:1 [x]*', 'a');
    await join(driver, 'claimed', 'b');
    await driver.broker.groups.claimDueSets('default', (group) => (group === 'claimed' ? AT_ONCE : undefined), 1);
    await driver.redis.del(driver.keys.groups);
    await driver.redis.sadd(driver.keys.groups, 'empty');
    await driver.redis.set(driver.keys.group('text'), 'x');
    expect(await driver.broker.groups.repairGroups('default')).toEqual({ listed: 1, removed: 1 });
    expect(await driver.redis.smembers(driver.keys.groups)).toEqual(['g:1 [x]*']);
  });

  it('are found in a queue whose name is a glob pattern, and only in that queue', async ({ driver }) => {
    for (const queue of ['a*b?[c]\\', 'aXbYc', 'axbyc\\']) {
      await driver.add({ queue, groupKey: 'g' });
      await driver.redis.del(new Keyspace().queue(queue).groups);
    }
    expect(await driver.broker.groups.repairGroups('a*b?[c]\\')).toEqual({ listed: 1, removed: 0 });
    expect(await driver.redis.exists(new Keyspace().queue('aXbYc').groups)).toBe(0);
  });

  it('are found among thousands of keys', async ({ driver }) => {
    await driver.enqueue(Array.from({ length: 3000 }, (_, n) => request({ groupKey: `g${n}` })));
    await driver.redis.del(driver.keys.groups);
    expect(await driver.broker.groups.repairGroups('default')).toEqual({ listed: 3000, removed: 0 });
    expect(await driver.redis.scard(driver.keys.groups)).toBe(3000);
  });

  it('are unlisted when they are checked and empty', async ({ driver }) => {
    await driver.redis.sadd(driver.keys.groups, 'empty');
    expect(await claim(driver)).toEqual([]);
    expect(await driver.redis.exists(driver.keys.groups)).toBe(0);
  });

  it('do not stop the repair of others when the key of a group has another type', async ({ driver }) => {
    await join(driver, 'fine', 'a');
    await driver.redis.sadd(driver.keys.groups, 'text');
    await driver.redis.set(driver.keys.group('text'), 'x');
    expect((await claim(driver)).map(({ group }) => group)).toEqual(['fine']);
  });
});

describe('a scheduled task that a Go server has moved to its group', () => {
  /** asynq's forward, as section 4.13 has it: the group is not listed. */
  async function forwardAsGo(driver: RedisDriver, id: string): Promise<void> {
    const { keys, redis } = driver;
    const group = await redis.hget(keys.task(id), 'group');
    await redis.zadd(keys.group(group!), driver.now, id);
    await redis.zrem(keys.scheduled, id);
    await redis.hset(keys.task(id), 'state', 'aggregating');
  }

  it('is found by the next pass of any of our servers', async ({ driver }) => {
    for (const [id, groupKey, seconds] of [
      ['a', 'g:1', 5],
      ['b', 'later', 6],
    ] as const) {
      await driver.add({ id, groupKey }, { processAt: driver.now + seconds });
    }
    driver.clock.advance(5000);
    await forwardAsGo(driver, 'a');
    expect(await driver.redis.exists(driver.keys.groups)).toBe(0);
    expect(await driver.broker.maintenance.forward('default')).toEqual({ moved: 0, nextDue: driver.now + 1 });
    expect(await driver.redis.smembers(driver.keys.groups)).toEqual(['g:1']);
    expect(await driver.redis.zrange(driver.keys.delayedGroups, '0', '-1')).toEqual([`${driver.now + 1}:later`]);
    expect((await claim(driver)).map(({ group }) => group)).toEqual(['g:1']);
  });

  it('is found among thousands, and no note of it stays afterwards', async ({ driver }) => {
    const batch = Array.from({ length: 1500 }, (_, n) =>
      request({ id: `t${n}`, groupKey: `g${n}` }, { processAt: driver.now + 5 }),
    );
    await driver.enqueue(batch);
    driver.clock.advance(5000);
    for (const n of [0, 700, 1499]) await forwardAsGo(driver, `t${n}`);
    expect((await driver.broker.maintenance.forward('default')).moved).toBe(1497);
    expect(await driver.redis.scard(driver.keys.groups)).toBe(1500);
    expect(await driver.redis.exists(driver.keys.delayedGroups)).toBe(0);
  });

  it('is found by a process that only enqueues, while other due tasks are not moved yet', async ({ driver }) => {
    for (const [id, groupKey, seconds] of [
      ['a', 'g:1', 5],
      ['b', 'next', 6],
      ['c', 'later', 60],
    ] as const) {
      await driver.add({ id, groupKey }, { processAt: driver.now + seconds });
    }
    expect(await driver.broker.groups.listDelayedGroups('default')).toBe(driver.now + 5);
    driver.clock.advance(6000);
    await forwardAsGo(driver, 'a');
    expect(await driver.broker.groups.listDelayedGroups('default')).toBe(driver.now);
    expect(await driver.redis.smembers(driver.keys.groups)).toEqual(['g:1']);
    await forwardAsGo(driver, 'b');
    expect(await driver.broker.groups.listDelayedGroups('default')).toBe(driver.now + 54);
    expect((await driver.redis.smembers(driver.keys.groups)).sort()).toEqual(['g:1', 'next']);
    expect(await driver.broker.groups.listDelayedGroups('empty')).toBeUndefined();
  });

  it('does not list a group that is empty, has another type, or a foreign note', async ({ driver }) => {
    for (const groupKey of ['gone', 'text']) await driver.add({ id: groupKey, groupKey }, { processAt: driver.now });
    await driver.broker.administration.moveTasks('default', 'run', ['gone', 'text']);
    await driver.redis.set(driver.keys.group('text'), 'x');
    await driver.redis.zadd(driver.keys.delayedGroups, 1, 'junk', 1, '5:');
    await driver.broker.maintenance.forward('default');
    expect(await driver.redis.exists(driver.keys.groups, driver.keys.delayedGroups)).toBe(0);
  });

  it('stays noted for a day after its time, in case only Go servers run', async ({ driver }) => {
    await driver.add({ groupKey: 'g' }, { processAt: driver.now + 1000 });
    await driver.add({ groupKey: 'g' }, { processAt: driver.now - 1000 });
    const ttl = await driver.redis.ttl(driver.keys.delayedGroups);
    expect(ttl).toBeGreaterThan(86_400 + 990);
    expect(ttl).toBeLessThanOrEqual(86_400 + 1000);
  });

  it('is not noted in a key of another type: the whole batch is rejected', async ({ driver }) => {
    await driver.redis.set(driver.keys.delayedGroups, 'x');
    const batch = [request(), request({ groupKey: 'g' }, { processAt: driver.now + 1 })];
    await expect(driver.enqueue(batch)).rejects.toBeInstanceOf(WrongKeyTypeError);
    expect(await driver.redis.keys('asynq:{default}:t:*')).toEqual([]);
  });
});
