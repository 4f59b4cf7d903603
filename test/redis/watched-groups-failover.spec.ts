import { expect, it, onTestFinished, vi } from 'vitest';
import type { GroupPolicy } from '../../lib/broker/groups.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import { startSentinel } from '../support/redis.js';
import { clientsOf, connectionsTo, observe } from './support.js';

vi.setConfig({ testTimeout: 240_000 }); // for a failover on a slow disk

const POLICY: GroupPolicy = { gracePeriod: 3600, maxDelay: 0, maxSize: 3 };
const GROUPS = 300;
const keys = new Keyspace().queue('default');

it('groups of a queue are watched on the master, and on the next one after a failover, each claimed once', async () => {
  const set = await startSentinel();
  onTestFinished(() => set.stop());
  const [old, next] = [observe(set.master.port), observe(set.replica.port)];
  const broker = new RedisBroker(connectionsTo({ sentinels: set.sentinels, name: set.name }));
  const watch = broker.groups.watchGroups('default');
  onTestFinished(() => watch.close());
  const claimed: string[] = [];
  const claim = async (): Promise<void> => {
    const { sets } = await broker.groups.claimDueSets('default', () => POLICY, 10, watch);
    claimed.push(...sets.map(({ group }) => group));
  };
  const expectWatched = (node: typeof old): Promise<void> =>
    vi.waitFor(async () => {
      await claim();
      expect((await clientsOf(node)).some(({ flags }) => flags.includes('B'))).toBe(true);
    });
  const expectClaimed = (...groups: string[]): Promise<void> =>
    vi.waitFor(async () => {
      await claim();
      expect(claimed.toSorted()).toEqual(groups.toSorted());
    });

  await broker.producer.enqueue(
    'default',
    Array.from({ length: GROUPS }, (_, n) => request({ groupKey: `user:${n}` })),
  );
  await expectWatched(old);
  await old.zadd(keys.group('user:7'), 1, 'a', 2, 'b');
  await expectClaimed('user:7');
  await old.zadd(keys.group('user:8'), 1, 'c', 2, 'd'); // Redis gives notice of it, and dies
  await old.wait(1, 10_000);
  await set.master.kill();
  await set.promoted();
  await expectWatched(next);
  await expectClaimed('user:7', 'user:8');
  await next.zadd(keys.group('user:9'), 1, 'e', 2, 'f');
  await expectClaimed('user:7', 'user:8', 'user:9');
  expect(await next.zcard(keys.aggregationSets)).toBe(3);
});
