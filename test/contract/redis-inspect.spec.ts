import { describe, expect, vi } from 'vitest';
import { Scripts } from '../../lib/broker/redis/scripts/scripts.js';
import type { StoredState } from '../../lib/wire/states.js';
import { UndecodableMessageError, WrongKeyTypeError } from '../../lib/errors.js';
import { encodeTaskMessage } from '../../lib/wire/codec.js';
import { message, request } from '../support/messages.js';
import { it, type RedisDriver } from './redis-fixture.js';

const LISTED = ['pending', 'active', 'scheduled', 'retry', 'archived', 'completed'] as const;

/** Puts an id into the list of a state without a task. */
async function addDangling(driver: RedisDriver, state: StoredState, id: string): Promise<void> {
  const { redis, keys } = driver;
  if (state === 'pending' || state === 'active') await redis.lpush(keys[state], id);
  else if (state === 'aggregating') await redis.zadd(keys.group('g'), driver.now, id);
  else await redis.zadd(keys[state], driver.now, id);
}

describe('a list', () => {
  it.for(LISTED)('of %s tasks separates damaged entries from the others', async (state, { driver }) => {
    const good = await driver.arrange(state);
    const bad: [string, Buffer | undefined | 'list'][] = [
      ['dangling', undefined],
      ['noise', Buffer.from([0xff, 0xff])],
      ['empty', Buffer.alloc(0)],
      ['foreign', encodeTaskMessage(message({ id: 'x' }))],
      ['list', 'list'],
    ];
    for (const [id, msg] of bad) {
      await addDangling(driver, state, id);
      if (msg === 'list') await driver.redis.lpush(driver.keys.task(id), 'x');
      else if (msg) await driver.redis.hset(driver.keys.task(id), { msg, state });
    }
    const page = await driver.broker.listing.listTasks('default', { state, size: 10 });
    expect(page.tasks.map((task) => task.message.id)).toEqual([good]);
    expect(page.damaged.map(({ id }) => id).sort()).toEqual(bad.map(([id]) => id).sort());
    for (const { error } of page.damaged) expect(error).toBeInstanceOf(UndecodableMessageError);
  });

  it('shows an active task without a lease as orphaned', async ({ driver }) => {
    const { lease } = await driver.takeNew();
    await driver.redis.zrem(driver.keys.lease, lease.id);
    expect((await driver.broker.listing.listTasks('default', { state: 'active', size: 1 })).tasks).toMatchObject([
      { orphaned: true },
    ]);
  });

  it('returns a shorter page when its tasks are large, and continues after it', async ({ driver }) => {
    const ids = ['a', 'b', 'c', 'd', 'e'];
    const payload = Buffer.alloc(1_500_000, 1);
    for (const state of ['pending', 'scheduled'] as const) {
      const processAt = state === 'scheduled' ? driver.now + 9 : undefined;
      for (const id of ids) await driver.enqueue([request({ id: state + id, payload }, { processAt })]);
      const seen: string[][] = [];
      for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
        const page = await driver.broker.listing.listTasks('default', { state, size: 10, cursor });
        seen.push(page.tasks.map((task) => task.message.id.slice(state.length)));
        cursor = page.cursor;
      }
      expect(seen).toEqual([['a', 'b'], ['c', 'd'], ['e']]);
    }
  });

  it('returns a task that is larger than a page', async ({ driver }) => {
    await driver.add({ id: 'a', payload: Buffer.alloc(5_000_000) });
    await driver.add({ id: 'b' });
    const page = await driver.broker.listing.listTasks('default', { state: 'pending', size: 2 });
    expect(page.tasks.map((task) => task.message.id)).toEqual(['a']);
    expect(
      (await driver.broker.listing.listTasks('default', { state: 'pending', size: 2, cursor: page.cursor })).tasks,
    ).toHaveLength(1);
  });

  it('continues among thousands of equal scores, and with fractional and infinite scores', async ({ driver }) => {
    const { redis, keys, broker } = driver;
    const same = Array.from({ length: 3000 }, (_, index) => `s${String(index).padStart(4, '0')}`);
    await redis.zadd(keys.retry, ...same.flatMap((id) => [driver.now, id]));
    await redis.zadd(keys.retry, '-inf', 'first', '1.5', 'half', '+inf', 'last', '1e300', 'far');
    const seen: string[] = [];
    for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
      const page = await broker.listing.listIds('default', { state: 'retry', size: 700, cursor });
      seen.push(...page.ids);
      if (page.cursor) await redis.zrem(keys.retry, page.ids.at(-1)!);
      cursor = page.cursor;
    }
    expect(seen).toEqual(['first', 'half', ...same, 'far', 'last']);
  });

  it('continues after an id that is not valid text', async ({ driver }) => {
    const { redis, keys, broker } = driver;
    const ids = [Buffer.from([0xff]), Buffer.from([0xfe])];
    await redis.zadd(keys.archived, 1, ids[0]!, 1, ids[1]!);
    await redis.lpush(keys.pending, ...ids);
    for (const state of ['archived', 'pending'] as const) {
      const { cursor } = await broker.listing.listIds('default', { state, size: 1 });
      const second = await broker.listing.listIds('default', { state, size: 1, cursor });
      expect([second.ids.length, second.cursor]).toEqual([1, undefined]);
    }
  });

  it('continues deep in a long list after hundreds of tasks before it were taken', async ({ driver }) => {
    const { redis, keys, broker } = driver;
    const ids = Array.from({ length: 3000 }, (_, index) => `i${index}`);
    await redis.lpush(keys.pending, ...ids);
    const first = await broker.listing.listIds('default', { state: 'pending', size: 1000 });
    await redis.rpop(keys.pending, 900);
    const second = await broker.listing.listIds('default', { state: 'pending', size: 1000, cursor: first.cursor });
    expect(second.ids).toEqual(ids.slice(1000, 2000));
  });

  it('of a key of another type is rejected with the name of the key', async ({ driver }) => {
    await driver.redis.set(driver.keys.group('g'), 'x');
    const listing = driver.broker.listing.listTasks('default', { state: 'aggregating', group: 'g', size: 1 });
    await expect(listing).rejects.toThrow(WrongKeyTypeError);
  });
});

describe('the numbers of a queue', () => {
  it('ignore dangling ids, and counters and times that are no numbers', async ({ driver }) => {
    const { redis, keys } = driver;
    for (const state of LISTED) await addDangling(driver, state, `dangling-${state}`);
    await redis.sadd(keys.groups, 'g', 'empty', 'wrong');
    await addDangling(driver, 'aggregating', 'dangling-g');
    await redis.set(keys.group('wrong'), 'x');
    await redis.set(keys.processed, 'many');
    await redis.hset(keys.task('odd'), 'pending_since', '1.7e18');
    await redis.rpush(keys.pending, 'odd');
    expect(await driver.broker.inspection.describeQueue('default')).toMatchObject({
      pending: 2,
      active: 1,
      scheduled: 1,
      aggregating: 1,
      groups: 3,
      latency: 0,
      processedTotal: 0,
    });
    expect(await driver.broker.inspection.groups('default')).toEqual([
      { group: 'empty', size: 0 },
      { group: 'g', size: 1 },
      { group: 'wrong', size: 0 },
    ]);
  });

  it('estimate the memory of many tasks from a sample, without missing ones', async ({ driver }) => {
    const requests = Array.from({ length: 50 }, () => request({ payload: Buffer.alloc(1000) }));
    await driver.enqueue(requests);
    await driver.redis.del(driver.keys.task(requests[0]!.message.id));
    const { memoryUsage } = await driver.broker.inspection.describeQueue('default');
    const one = (await driver.redis.memory('USAGE', driver.keys.task(requests[1]!.message.id))) as number;
    const list = (await driver.redis.memory('USAGE', driver.keys.pending)) as number;
    expect(memoryUsage).toBe(50 * one + list);
  });

  it('cost the same few commands whatever the size of the queue', async ({ driver }) => {
    await driver.enqueue(Array.from({ length: 2_000 }, () => request()));
    const calls = async (): Promise<number> => {
      await driver.redis.config('RESETSTAT');
      await driver.broker.inspection.describeQueue('default');
      const stats = await driver.redis.info('commandstats');
      return [...stats.matchAll(/calls=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    await driver.broker.inspection.describeQueue('default');
    const before = await calls();
    await driver.enqueue(Array.from({ length: 2_000 }, () => request()));
    expect(await calls()).toBe(before);
  });
});

describe('the list of servers', () => {
  it('skips unreadable servers and removes those that were not renewed for long', async ({ driver }) => {
    const { redis } = driver;
    const name = (id: string): string => `asynq:servers:{h:1:${id}}`;
    await redis.zadd('asynq:servers', driver.now - 3_600, name('old'), driver.now - 5, name('gone'));
    await redis.zadd('asynq:servers', driver.now, name('noise'), driver.now, name('wrong'));
    await redis.set(name('noise'), Buffer.from([0xff]));
    await redis.lpush(name('wrong'), 'x');
    expect(await driver.broker.publications.servers()).toEqual([]);
    expect((await redis.zrange('asynq:servers', '0', '-1')).sort()).toEqual(['gone', 'noise', 'wrong'].map(name));
  });
});

describe('deleting damaged entries', () => {
  it.for(['pending', 'scheduled', 'retry', 'archived', 'completed'] as const)(
    'works in %s, for one entry and for all',
    async (state, { driver }) => {
      const { broker, redis, keys } = driver;
      const bad = ['dangling', 'other', 'list', 'noise'];
      for (const id of bad) await addDangling(driver, state, id);
      await redis.lpush(keys.task('list'), 'x');
      await redis.hset(keys.task('noise'), { msg: Buffer.from([0xff]), state });
      expect(await broker.administration.moveTasks('default', 'run', ['dangling', 'list'], { state })).toEqual([
        'missing',
        'missing',
      ]);
      expect(await broker.administration.moveTasks('default', 'delete', ['dangling'])).toEqual(['moved']);
      expect(await broker.administration.moveTasks('default', 'delete', bad, { state })).toEqual([
        'missing',
        'moved',
        'moved',
        'moved',
      ]);
      expect(await redis.keys('asynq:{default}:*')).toEqual([]);
    },
  );

  it('does not search a long list for the ids of tasks that have run', async ({ driver }) => {
    const { redis, keys } = driver;
    await redis.lpush(keys.pending, ...Array.from({ length: 5_000 }, (_, index) => `i${index}`));
    const gone = Array.from({ length: 200 }, (_, index) => `gone${index}`);
    const statuses = await driver.broker.administration.moveTasks('default', 'delete', gone, { state: 'pending' });
    expect(new Set(statuses)).toEqual(new Set(['missing']));
    expect(await redis.llen(keys.pending)).toBe(5_000);
  });

  it('keeps an id that is leased', async ({ driver }) => {
    const { lease } = await driver.takeNew();
    await driver.redis.hdel(driver.keys.task(lease.id), 'msg', 'state');
    expect(await driver.broker.administration.moveTasks('default', 'delete', [lease.id])).toEqual(['active']);
  });
});

describe('one task of a long list', () => {
  it.for([
    ['the front', 'old', 'the back'],
    ['the back', 'new', 'the front'],
  ] as const)('is searched from %s when it is there', async ([_, id, kept], { driver }) => {
    const { redis, keys, broker } = driver;
    await driver.add({ id: 'old' });
    for (let second = 0; second < 3; second++) {
      driver.clock.advance(1_000);
      await driver.enqueue(Array.from({ length: 400 }, () => request()));
    }
    driver.clock.advance(1_000);
    await driver.add({ id: 'new' });
    // A second entry of the same id, near the other end, shows from which end the first one was
    // found.
    if (id === 'old') await redis.lpush(keys.pending, id);
    else await redis.linsert(keys.pending, 'BEFORE', (await redis.lindex(keys.pending, -1_100))!, id);
    expect(await broker.administration.moveTasks('default', 'delete', [id])).toEqual(['moved']);
    expect(await redis.lindex(keys.pending, kept === 'the back' ? 0 : -1_101)).toBe(id);
    expect(await redis.llen(keys.pending)).toBe(1_202);
    expect(await redis.lpos(keys.pending, id, 'RANK', kept === 'the back' ? 2 : -2)).toBeNull();
  });

  it('is searched from the front when it was put back there', async ({ driver }) => {
    const { redis, keys, broker } = driver;
    await driver.add({ id: 'again' });
    const { lease } = await driver.takeOne();
    await driver.enqueue(Array.from({ length: 1_200 }, () => request()));
    driver.clock.advance(1_000);
    await driver.settle({ kind: 'requeue', lease });
    await redis.lpush(keys.pending, 'again');
    expect(await broker.administration.moveTasks('default', 'delete', ['again'])).toEqual(['moved']);
    expect(await redis.lindex(keys.pending, 0)).toBe('again');
  });
});

describe('updating a payload', () => {
  it('reads again when another client was faster', async ({ driver }) => {
    const { redis, keys, broker } = driver;
    const id = await driver.arrange('scheduled');
    const run = Scripts.prototype.run;
    const spy = vi.spyOn(Scripts.prototype, 'run').mockImplementation(async function (this: Scripts, ...args) {
      if (args[1] === 'updatePayload' && spy.mock.calls.filter(([, name]) => name === args[1]).length === 1) {
        await redis.hset(keys.task(id), 'msg', encodeTaskMessage(message({ id, type: 'new' })));
      }
      return run.apply(this, args);
    });
    expect(await broker.administration.updatePayload('default', id, Buffer.from('p'))).toBe('updated');
    spy.mockRestore();
    expect((await broker.inspection.getTask('default', id))?.message).toMatchObject({
      type: 'new',
      payload: Buffer.from('p'),
    });
  });
});

describe('deleting a queue', () => {
  it('deletes every key that starts with its prefix, and no other', async ({ driver }) => {
    const { redis, keys, broker } = driver;
    const odd = 'a*[b]?\\\\c';
    for (const queue of ['default', 'default2', odd, 'axb']) await driver.add({ queue });
    await redis.zadd(keys.group('unlisted'), 1, 'x');
    await redis.set(keys.unique('t', Buffer.from('x')), 'nobody', 'EX', 60);
    await redis.zadd(keys.aggregationSets, 1, 'asynq:{default2}:pending');
    expect(await broker.administration.deleteQueue('default', { force: true })).toBe('deleted');
    expect(await broker.administration.deleteQueue(odd, { force: true })).toBe('deleted');
    expect((await redis.keys('*')).filter((key) => key.includes('default}') || key.includes('[')).sort()).toEqual([]);
    expect((await broker.inspection.queues()).sort()).toEqual(['axb', 'default2']);
    expect((await broker.inspection.describeQueue('default2')).pending).toBe(1);
  });

  it('keeps tasks that are enqueued meanwhile, and they run', async ({ driver }) => {
    await driver.enqueue(Array.from({ length: 10 }, () => request()));
    const run = Scripts.prototype.run;
    const spy = vi.spyOn(Scripts.prototype, 'run').mockImplementation(async function (this: Scripts, ...args) {
      if (args[1] === 'sweepQueue' && args[2].length > 8) await driver.add({ id: 'late' });
      return run.apply(this, args);
    });
    expect(await driver.broker.administration.deleteQueue('default', { force: true })).toBe('deleted');
    spy.mockRestore();
    expect(await driver.broker.inspection.queues()).toEqual(['default']);
    expect((await driver.take(9)).map(({ lease }) => lease.id)).toEqual(['late']);
  });

  it('resumes the queue when the deletion is called off', async ({ driver }) => {
    await driver.enqueue(Array.from({ length: 500 }, () => request()));
    const controller = new AbortController();
    const options = { force: true, signal: controller.signal, onProgress: () => controller.abort(new Error('enough')) };
    await expect(driver.broker.administration.deleteQueue('default', options)).rejects.toThrow('enough');
    expect(await driver.take(1)).toHaveLength(1);
    expect((await driver.queue()).pending).toHaveLength(299);
  });
});
