import { describe, expect } from 'vitest';
import { LEASE_SECONDS } from '../../lib/broker/broker.js';
import { UndecodableMessageError, WrongKeyTypeError } from '../../lib/errors.js';
import { encodeTaskMessage } from '../../lib/wire/codec.js';
import { message, request } from '../support/messages.js';
import { completion, done, expectUnchanged, requeueing, retrial, expectQueue } from './driver.js';
import { it, type RedisDriver } from './redis-fixture.js';

const ids = (count: number, prefix = 'dangling'): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

/** Bytes that are no message of the task `a`. */
const BAD_MESSAGES: [string, Buffer][] = [
  ['not protobuf', Buffer.from([0xff, 0xff, 0xff])],
  ['cut off', encodeTaskMessage(message({ id: 'a' })).subarray(0, 20)],
  ['empty', Buffer.alloc(0)],
  ['the message of another task', encodeTaskMessage(message({ id: 'other' }))],
];

describe('a damaged message', () => {
  const damage = async (driver: RedisDriver, id: string, raw: Buffer): Promise<void> => {
    await driver.add({ id });
    await driver.redis.hset(driver.keys.task(id), 'msg', raw);
  };

  it.for(BAD_MESSAGES)(
    'is leased, returned apart from the others and archived unchanged: %s',
    async ([_, raw], { driver }) => {
      await damage(driver, 'a', raw);
      await driver.add({ id: 'b' });
      const reply = await driver.exchange([], 5);
      expect(reply.tasks.map(({ lease }) => lease.id)).toEqual(['b']);
      expect(reply.damaged).toHaveLength(1);
      const [bad] = reply.damaged;
      if (!bad) throw new Error('nothing damaged was handed out');
      expect(bad.raw.equals(raw)).toBe(true);
      expect(bad.error).toBeInstanceOf(UndecodableMessageError);
      expect(bad.lease).toMatchObject({ queue: 'default', id: 'a', expiresAt: driver.now + LEASE_SECONDS });
      expect(await driver.settle({ kind: 'archive', lease: bad.lease, message: undefined })).toEqual(['settled']);
      const { msg, state } = await driver.redis.hgetallBuffer(driver.keys.task('a'));
      expect(msg?.equals(raw)).toBe(true);
      expect(state?.toString()).toBe('archived');
      expect(await driver.redis.zrange(driver.keys.archived, '0', '-1')).toEqual(['a']);
    },
  );

  it('does not hide other tasks from recovery', async ({ driver }) => {
    await driver.enqueue(['a', 'b'].map((id) => request({ id })));
    await driver.take(2);
    await driver.redis.hset(driver.keys.task('a'), 'msg', Buffer.from([0xff]));
    const expired = await driver.broker.maintenance.listExpiredLeases('default', driver.now + LEASE_SECONDS, 10);
    expect(expired.tasks.map(({ lease }) => lease.id)).toEqual(['b']);
    expect(expired.damaged.map(({ lease, raw }) => [lease.id, raw])).toEqual([['a', Buffer.from([0xff])]]);
    expect(expired.dangling).toBe(0);
    const [bad] = expired.damaged;
    if (!bad) throw new Error('nothing damaged was listed');
    expect(await driver.settle({ kind: 'archive', lease: bad.lease, message: undefined })).toEqual(['settled']);
  });

  it('is reported by getTask', async ({ driver }) => {
    await damage(driver, 'a', Buffer.from([0xff]));
    await expect(driver.broker.inspection.getTask('default', 'a')).rejects.toBeInstanceOf(UndecodableMessageError);
  });
});

describe('an id without a task', () => {
  it('in pending is removed and does not count towards the batch', async ({ driver }) => {
    await driver.redis.lpush(driver.keys.pending, ...ids(5));
    await driver.enqueue(['a', 'b', 'c'].map((id) => request({ id })));
    const reply = await driver.exchange([], 2);
    expect(reply.tasks.map(({ lease }) => lease.id)).toEqual(['a', 'b']);
    expect(reply.backlog).toBe(1);
    await expectQueue(driver, { pending: ['c'], active: ['a', 'b'] });
  });

  it('in pending, with a part of a hash, is removed with it, and the id is free again', async ({ driver }) => {
    await driver.redis.lpush(driver.keys.pending, 'a');
    await driver.redis.hset(driver.keys.task('a'), { state: 'active', result: 'late' });
    expect(await driver.exchange([], 1)).toMatchObject({ tasks: [], backlog: 0 });
    expect(await driver.redis.exists(driver.keys.task('a'), driver.keys.pending, driver.keys.lease)).toBe(0);
    expect(await driver.enqueue([request({ id: 'a' })])).toEqual(['enqueued']);
  });

  it('in pending, thousands of times, delays the tasks after it by a few calls only', async ({ driver }) => {
    await driver.redis.lpush(driver.keys.pending, ...ids(4000));
    await driver.add({ id: 'real' });
    let calls = 0;
    for (let found = false; !found; calls++) {
      const { tasks, backlog } = await driver.exchange([], 10);
      found = tasks.length > 0;
      expect(found || backlog > 0).toBe(true);
    }
    expect(calls).toBeLessThanOrEqual(5);
  });

  it('in active and lease is removed and counted by recovery, and hides no other task', async ({ driver }) => {
    const task = await driver.takeNew({ id: 'real' });
    await driver.redis.lpush(driver.keys.active, ...ids(30));
    for (const id of ids(30)) await driver.redis.zadd(driver.keys.lease, driver.now, id);
    await driver.redis.hset(driver.keys.task('dangling7'), 'state', 'active');
    const expired = await driver.broker.maintenance.listExpiredLeases('default', driver.now + LEASE_SECONDS, 10);
    expect(expired.dangling).toBe(30);
    expect(expired.tasks.map(({ lease }) => lease)).toEqual([{ ...task.lease }]);
    const { lease, active, tasks } = await driver.queue();
    expect([lease.length, active, Object.keys(tasks)]).toEqual([1, ['real'], ['real']]);
  });

  it('in scheduled and retry is removed when it is due', async ({ driver }) => {
    await driver.redis.zadd(driver.keys.scheduled, driver.now, 'dangling0');
    await driver.redis.zadd(driver.keys.retry, driver.now, 'dangling1');
    await driver.add({ id: 'real' }, { processAt: driver.now });
    expect(await driver.broker.maintenance.forward('default')).toEqual({ moved: 1, nextDue: undefined });
    await expectQueue(driver, { pending: ['real'], scheduled: [], retry: [] });
  });

  it('in completed and archived is deleted with the others', async ({ driver }) => {
    await driver.add();
    await driver.redis.zadd(driver.keys.completed, 1, 'dangling0');
    await driver.redis.zadd(driver.keys.archived, 1, 'dangling1');
    expect(await driver.broker.maintenance.deleteExpiredCompleted('default', 10)).toBe(1);
    expect(await driver.broker.maintenance.trimArchived('default', 10)).toBe(1);
    await expectQueue(driver, { completed: [], archived: [] });
  });

  it('is lost for every settlement that keeps the task, and no task is created', async ({ driver }) => {
    const task = await driver.takeNew();
    await driver.redis.del(driver.keys.task(task.lease.id));
    const before = await driver.contents();
    const settlements = [completion(task, driver.now + 9), retrial(task, driver.now), requeueing(task)];
    expect(await driver.settle(...settlements)).toEqual(['lost', 'lost', 'lost']);
    expect(await driver.broker.consumer.writeResult(task.lease, Buffer.from('x'))).toBe(false);
    expect(await driver.contents()).toEqual(before);
  });

  it('that is settled as done leaves no trace in active and lease', async ({ driver }) => {
    const task = await driver.takeNew();
    await driver.redis.del(driver.keys.task(task.lease.id));
    await driver.settle(done(task));
    await driver.broker.maintenance.listExpiredLeases('default', driver.now + LEASE_SECONDS, 10);
    await expectQueue(driver, { active: [], lease: [], tasks: {} });
  });
});

describe('an active task without a lease', () => {
  it('gets one, once, and is recovered like any other', async ({ driver }) => {
    const [task, other] = [await driver.takeNew(), await driver.takeNew()];
    driver.clock.advance(3000);
    await driver.redis.zrem(driver.keys.lease, task.lease.id);
    expect(await driver.broker.maintenance.repairActive('default')).toBe(1);
    expect(await driver.broker.maintenance.repairActive('default')).toBe(0);
    const { lease } = await driver.queue();
    expect(lease).toEqual([
      [other.lease.id, other.lease.expiresAt],
      [task.lease.id, driver.now + LEASE_SECONDS],
    ]);
    const [found] = (
      await driver.broker.maintenance.listExpiredLeases('default', driver.now + LEASE_SECONDS, 10)
    ).tasks.slice(1);
    if (!found) throw new Error('the task was not listed');
    expect(await driver.settle(retrial(found, driver.now))).toEqual(['settled']);
  });

  it('is found among thousands', async ({ driver }) => {
    await driver.enqueue(Array.from({ length: 2500 }, () => request()));
    const tasks = await driver.take(2500);
    const forgotten = tasks.filter((_, index) => index % 2 === 0).map(({ lease }) => lease.id);
    await driver.redis.zrem(driver.keys.lease, ...forgotten);
    expect(await driver.broker.maintenance.repairActive('default')).toBe(1250);
    expect((await driver.queue()).lease).toHaveLength(2500);
  });

  it('is lost for its old holder, which must not settle it without a fence', async ({ driver }) => {
    const task = await driver.takeNew();
    await driver.redis.zrem(driver.keys.lease, task.lease.id);
    await expectUnchanged(driver, async () => {
      expect(await driver.settle(done(task), retrial(task, driver.now))).toEqual(['lost', 'lost']);
      expect(await driver.broker.consumer.extendLeases('default', [task.lease], driver.now + 60)).toEqual([false]);
    });
  });
});

describe('a key of the wrong type', () => {
  it('in the place of a task is a conflict on enqueue, is skipped on take and is not deleted', async ({ driver }) => {
    await driver.redis.set(driver.keys.task('a'), 'x');
    expect(await driver.enqueue([request({ id: 'a' })])).toEqual(['conflict']);
    await driver.redis.lpush(driver.keys.pending, 'a');
    await driver.add({ id: 'b' });
    expect((await driver.take(5)).map(({ lease }) => lease.id)).toEqual(['b']);
    expect(await driver.redis.get(driver.keys.task('a'))).toBe('x');
  });

  it('in the place of a group fails the whole batch before anything is written', async ({ driver }) => {
    await driver.add({}, { processAt: driver.now });
    const [id] = Object.keys((await driver.queue()).tasks);
    await driver.world.nameGroup('default', id ?? '', 'g');
    await driver.redis.set(driver.keys.group('g'), 'x');
    const before = await driver.contents();
    const batch = [request(), request({ groupKey: 'g' }), request()];
    await expect(driver.enqueue(batch)).rejects.toBeInstanceOf(WrongKeyTypeError);
    await expect(driver.broker.maintenance.forward('default')).rejects.toBeInstanceOf(WrongKeyTypeError);
    expect(await driver.contents()).toEqual(before);
  });

  it('in the place of a sorted set fails every kind of settlement, and the whole batch', async ({ driver }) => {
    const tasks = [await driver.takeNew(), await driver.takeNew()] as const;
    await driver.add();
    for (const key of [driver.keys.retry, driver.keys.processed]) {
      await driver.redis.rpush(key, 'x');
      const before = await driver.contents();
      const settlements = [done(tasks[0]), retrial(tasks[1], driver.now)];
      const failed = driver.exchange(settlements, 5);
      await expect(failed).rejects.toBeInstanceOf(WrongKeyTypeError);
      await expect(failed).rejects.toThrow(key);
      expect(await driver.contents()).toEqual(before);
      await driver.redis.del(key);
    }
    expect(await driver.settle(done(tasks[0]), retrial(tasks[1], driver.now))).toEqual(['settled', 'settled']);
  });
});

describe('a field that another program stores with a task', () => {
  it('stays in its hash in every state until the task is deleted', async ({ driver }) => {
    const id = await driver.add({ retention: 60 }, { processAt: driver.now });
    const key = driver.keys.task(id);
    await driver.redis.hset(key, 'ours:note', 'kept');
    await driver.broker.maintenance.forward('default');
    await driver.settle(retrial(await driver.takeOne(), driver.now));
    await driver.broker.maintenance.forward('default');
    await driver.settle(requeueing(await driver.takeOne()));
    await driver.settle(completion(await driver.takeOne(), driver.now + 60));
    expect(await driver.redis.hget(key, 'ours:note')).toBe('kept');
    expect(await driver.redis.hget(key, 'state')).toBe('completed');
    driver.clock.advance(60_000);
    await driver.broker.maintenance.deleteExpiredCompleted('default', 1);
    expect(await driver.redis.exists(key)).toBe(0);
  });
});
