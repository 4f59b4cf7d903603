import { describe, expect } from 'vitest';
import type { LinkedRequest, Parcel } from '../../lib/broker/links.js';
import { LinkSession } from '../contract/link-session.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { request } from '../support/messages.js';

const waits = (id: string, key: string): LinkedRequest => ({
  ...request({ id }),
  wait: { prerequisites: [{ type: 't', key }], onFailure: 'cancel', onTimeout: 'archive', deadline: 2 ** 31 },
});
const marks = (id: string, key: string): LinkedRequest => ({
  ...request({ id, type: 't' }),
  mark: { type: 't', key, rememberFor: 60 },
});

/** Carries parcels until nothing is left. */
async function carry({ broker: { links } }: RedisDriver, parcels: readonly Parcel[]): Promise<void> {
  for (const parcel of parcels) {
    const caused = await links.deliver(parcel.to, [parcel]);
    await links.acknowledge(parcel.from, [parcel]);
    await carry({ broker: { links } } as RedisDriver, caused.parcels);
  }
}

describe('a task that waits for a mark', () => {
  it('is for Go a task in a group that nobody lists', async ({ driver }) => {
    const { redis, keys } = driver;
    const { statuses, parcels } = await driver.broker.links.enqueue('default', [waits('b', '1')]);
    expect(statuses).toEqual(['enqueued']);
    expect(parcels).toHaveLength(1);
    expect(await redis.hmget(keys.task('b'), 'state', 'group')).toEqual(['aggregating', 'asynq:waiting']);
    expect(await redis.zscore(keys.waitingTasks, 'b')).toBe(String(2 ** 31));
    expect(await redis.exists(keys.groups)).toBe(0);
    await carry(driver, parcels);
    expect(await redis.exists(keys.outbox)).toBe(0);
  });

  it('has a watcher where it is stored, when its end is remembered', async ({ driver }) => {
    expect((await driver.broker.links.enqueue('default', [marks('a', '1')])).parcels).toEqual([]);
    const links = await driver.redis.hget(driver.keys.links, 'a');
    expect(JSON.parse(links!)).toEqual([{ k: 'm', to: '~t', key: '1', ttl: 60 }]);
  });
});

describe('the end of a prerequisite that came before the waiting task', () => {
  it('is kept for a day, for a process that was frozen', async ({ driver }) => {
    const session = new LinkSession(driver);
    await driver.add({ id: 'a' });
    await session.watch(session.waiting('b', [{ queue: 'default', id: 'a' }]));
    await session.runNext();
    expect(await driver.redis.ttl('asynq:{default}:early:b')).toBeGreaterThan(86_000);
  });
});

describe('an exchange in a queue with links', () => {
  it('tells the mark, which releases what waits', async ({ driver }) => {
    const { links, consumer } = driver.broker;
    await links.enqueue('default', [marks('a', '1')]);
    const { parcels } = await links.enqueue('default', [waits('b', '1')]);
    await carry(driver, parcels);
    const first = await consumer.exchange('default', { settle: [], take: 5 });
    expect(first.tasks.map(({ lease, links: watchers }) => [lease.id, watchers?.length])).toEqual([['a', 1]]);
    expect(first.parcels).toEqual([]);
    const [{ lease }] = first.tasks as [(typeof first.tasks)[0]];
    const second = await consumer.exchange('default', { settle: [{ kind: 'done', lease, uniqueKey: '' }], take: 5 });
    expect(second.settled).toEqual(['settled']);
    expect(second.parcels?.map(({ to }) => to)).toEqual(['~t']);
    await carry(driver, second.parcels!);
    const third = await consumer.exchange('default', { settle: [], take: 5 });
    expect(third.tasks.map((task) => [task.lease.id, task.links])).toEqual([['b', undefined]]);
    expect(third.parcels).toBeUndefined();
    expect(await driver.redis.exists(driver.keys.links, driver.keys.outbox, driver.keys.waitingTasks)).toBe(0);
  });
});
