import { describe, expect } from 'vitest';
import { CHUNK_SECONDS, taskIdOfMember } from '../../lib/broker/batches.js';
import { TECHNICAL_RETENTION } from '../../lib/broker/links.js';
import { BatchSession, CALLS, HOME } from './batch-session.js';
import { archival, completion, done } from './driver.js';
import { it, type RedisDriver } from './redis-fixture.js';

/** Does something as a program that knows no links. */
async function unseen(driver: RedisDriver, work: () => Promise<unknown>): Promise<void> {
  const { links } = driver.keys;
  await driver.redis.rename(links, 'away');
  await work();
  await driver.redis.rename('away', links);
}

/** Lets the keepers work for some time. */
async function recover(session: BatchSession, times = 4, seconds = CHUNK_SECONDS): Promise<void> {
  for (let n = 0; n < times; n++) {
    session.driver.clock.advance(seconds * 1000);
    await session.keep();
  }
}

const keysOf = (driver: RedisDriver, queue: string): Promise<string[]> => driver.redis.keys(`asynq:{${queue}}:*`);

describe('members that a server ended which knows no links', () => {
  it('are found within seconds, and kept only as long as they asked for', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    await session.add(batch, 10);
    await session.add(batch, 1, 'default', { message: { retention: 600 } });
    await session.close(batch);
    const tasks = await driver.take(11);
    expect(tasks.map(({ message }) => message.retention)).toEqual([...Array(10).fill(TECHNICAL_RETENTION), 600]);
    await unseen(driver, async () => {
      const ends = tasks.slice(2).map((task) => completion(task, driver.now + task.message.retention));
      await driver.settle(archival(tasks[0]!), done(tasks[1]!), ...ends);
    });
    expect(await session.counts(batch)).toBe('closed 11 11 0 0');
    await recover(session, 2, 2);
    expect(await session.counts(batch)).toBe('completed 11 0 9 2');
    expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
    expect((await driver.queue()).completed).toHaveLength(1);
    await driver.broker.administration.moveTasks('default', 'run', [tasks[0]!.lease.id]);
    const [again] = await driver.take();
    await unseen(driver, () => driver.settle(completion(again!, driver.now + TECHNICAL_RETENTION)));
    await recover(session, 2, 2);
    expect(await session.counts(batch)).toBe('completed 11 0 10 1');
  });

  it('are found among many, a slice per pass', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    for (let n = 0; n < 12; n++) await session.add(batch, 500);
    await session.close(batch);
    const { pending } = await driver.queue();
    const doomed = pending.filter((_, index) => index % 1_000 === 999);
    await driver.broker.administration.moveTasks('default', 'delete', doomed);
    await recover(session, 4, 2);
    expect(await session.counts(batch)).toBe('closed 6000 5994 0 6');
  });
});

describe('a pass over many batches', () => {
  it('does a bounded part of the work, and the next ones the rest', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batches: string[] = [];
    for (let n = 0; n < 20; n++) {
      const batch = await session.open();
      await session.add(batch, 400);
      await session.close(batch);
      batches.push(batch);
    }
    const { pending } = await driver.queue();
    await driver.broker.administration.moveTasks('default', 'delete', pending);
    driver.clock.advance(3_000);
    session.took(await driver.broker.links.keep('default', 0));
    const pendingNow = async () => {
      const found = await Promise.all(batches.map((batch) => session.progress(batch)));
      return found.reduce((sum, progress) => sum + progress!.pending, 0);
    };
    const left = await pendingNow();
    expect(left).toBeGreaterThan(4_000);
    expect(left).toBeLessThan(8_000);
    await recover(session, 6, 2);
    expect(await pendingNow()).toBe(0);
  });
});

describe('parcels of a batch that overtake each other', () => {
  it('do not take back what a part has told since', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    await session.add(batch, 2);
    await session.add(batch, 1, 'other');
    await session.close(batch);
    await session.runNext('archive');
    await session.runNext();
    const [death, all] = session.sent.filter(({ from }) => from === 'default');
    session.lose();
    for (const parcel of [all!, death!]) session.took(await session.links.deliver(HOME, [parcel]));
    await session.run(1, 'done', 'other');
    expect(await session.counts(batch)).toBe('completed 3 0 2 1');
    expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
  });

  it('do not refuse a callback whose task is on its way', async ({ driver }) => {
    const { links } = driver.broker;
    const session = new BatchSession(driver);
    const batch = await session.open();
    await session.close(batch);
    const offers = [...session.sent];
    session.lose();
    const { parcels: accepts } = await links.deliver(CALLS, offers);
    const { parcels: grants } = await links.deliver(HOME, accepts);
    const { parcels: again } = await links.deliver(HOME, accepts);
    await links.deliver(CALLS, [...again, ...grants]);
    expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
  });
});

describe('what Redis has lost of a batch', () => {
  it('ends it, if it is a part: its members have failed, as far as the home does not know better', async ({
    driver,
  }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    await session.add(batch, 5);
    await session.add(batch, 5, 'other');
    await session.close(batch);
    await session.run(5);
    await session.run(2, 'archive', 'other');
    await driver.redis.del(await keysOf(driver, 'other'));
    await recover(session);
    expect(await session.counts(batch)).toBe('completed 10 0 5 5');
    expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
  });

  it('ends it, if it is the youngest members of a part', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    await session.add(batch, 3);
    const part = driver.keys.part(batch);
    const before = await Promise.all([part, driver.keys.partMade(batch)].map((key) => driver.redis.dumpBuffer(key)));
    await session.add(batch, 3);
    await driver.redis.restore(part, 0, before[0]!, 'REPLACE');
    await driver.redis.restore(driver.keys.partMade(batch), 0, before[1]!, 'REPLACE');
    const lost = Array.from({ length: 3 }, (_, index) => taskIdOfMember(batch, 3 + index));
    await driver.broker.administration.moveTasks('default', 'delete', lost);
    await session.close(batch);
    await session.run(3);
    await recover(session);
    expect(await session.counts(batch)).toBe('completed 6 0 3 3');
  });

  it('is asked for again, if it is a parcel', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    await session.add(batch, 5);
    await session.close(batch);
    await session.runNext('archive');
    for (let n = 0; n < 4; n++) await session.runNext();
    session.lose();
    await driver.redis.del(driver.keys.outbox);
    await recover(session, 1);
    expect(await session.counts(batch)).toBe('completed 5 0 4 1');
    expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
  });

  it('is offered again, if it is a callback on its way', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    await session.close(batch);
    session.lose();
    await driver.redis.del(driver.keyspace.queue(HOME).outbox);
    expect(await driver.broker.batches.delete(HOME, batch)).toMatchObject({ status: 'running' });
    await recover(session, 2);
    expect(await driver.broker.batches.delete(HOME, batch)).toMatchObject({ status: 'deleted' });
    expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
  });

  it('frees the parts, if it is the home', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    await session.add(batch, 2);
    await session.add(batch, 2, 'other');
    await session.run(1);
    await driver.redis.del(await keysOf(driver, HOME));
    await session.run(1);
    await session.run(2, 'done', 'other');
    await recover(session, 2);
    expect(await session.progress(batch)).toBeUndefined();
    const left = [...(await keysOf(driver, 'default')), ...(await keysOf(driver, 'other'))];
    expect(left.filter((key) => /:(links|outbox|timers|part:.*)$/.test(key))).toEqual([]);
  });
});

describe('a batch in Redis', () => {
  it('costs some bits per member', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    for (let n = 0; n < 20; n++) await session.add(batch, 500);
    for (const task of await driver.take(10_000)) await driver.settle(done(task));
    const keys = await driver.redis.keys('asynq:*');
    const used = await Promise.all(keys.map((key) => driver.redis.memory('USAGE', key)));
    expect(used.reduce((sum: number, bytes) => sum + Number(bytes), 0)).toBeLessThan(10_000);
  });

  it('leaves no key', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open({ retention: 60 });
    await session.add(batch, 20);
    await session.add(batch, 2, 'other');
    await session.close(batch);
    await session.run(19);
    await session.run(1, 'revoke');
    await session.run(2, 'done', 'other');
    expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
    await recover(session, 6);
    const keys = await driver.redis.keys('asynq:*');
    const places = [HOME, CALLS, 'default', 'other'].map((queue) => `asynq:{${queue}}:`);
    const kept = keys.filter(
      (key) => places.some((place) => key.startsWith(place)) && !/:(processed|failed)/.test(key),
    );
    expect(kept).toEqual([]);
    expect(await driver.broker.links.places()).toEqual([]);
  });

  it('is not touched by a part of the wrong type, which fails nothing else', async ({ driver }) => {
    const session = new BatchSession(driver);
    const batch = await session.open();
    await session.add(batch, 1);
    await driver.add({ id: 'plain' });
    for (const key of [driver.keys.part(batch), driver.keys.partMade(batch)]) {
      await driver.redis.del(key);
      await driver.redis.lpush(key, 'x');
    }
    const tasks = await driver.take(2);
    expect(await driver.settle(...tasks.map(done))).toEqual(['settled', 'settled']);
  });
});
