import { expect, it, onTestFinished, vi } from 'vitest';
import type { GroupPolicy } from '../../lib/broker/groups.js';
import { slotOf } from '../../lib/broker/redis/connection/slot.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import { startCluster } from '../support/redis.js';
import { clientsOf, connectionsTo, observe } from './support.js';

const POLICY: GroupPolicy = { gracePeriod: 3600, maxDelay: 0, maxSize: 3 };
const keys = new Keyspace().queue('default');

it('groups of a queue are watched on the node that has it, and on the next when it moves', async () => {
  const cluster = await startCluster(3);
  onTestFinished(() => cluster.stop());
  const nodes = cluster.nodes.map(({ port }) => observe(port));
  const slot = slotOf(keys.groups);
  const at = Math.min(2, Math.floor((slot * 3) / 16_384));
  const [home, next] = [nodes[at]!, nodes[(at + 1) % 3]!];
  const broker = new RedisBroker(connectionsTo({ cluster: cluster.nodes }));
  const fill = (): Promise<unknown> =>
    broker.producer.enqueue(
      'default',
      Array.from({ length: 300 }, (_, n) => request({ groupKey: `user:${n}` })),
    );
  const watch = broker.groups.watchGroups('default');
  const claim = () => broker.groups.claimDueSets('default', () => POLICY, 10, watch);
  const hears = async (node: (typeof nodes)[number]): Promise<boolean> =>
    (await clientsOf(node)).some(({ flags }) => flags.includes('B'));
  const expectWatchedBy = (node: (typeof nodes)[number]): Promise<void> =>
    vi.waitFor(async () => {
      await claim();
      expect(await Promise.all(nodes.map(hears))).toEqual(nodes.map((one) => one === node));
    });
  const expectClaimed = (group: string): Promise<void> =>
    vi.waitFor(async () => expect((await claim()).sets).toMatchObject([{ group }]));

  await fill();
  await expectWatchedBy(home);
  await home.zadd(keys.group('user:7'), 1, 'a', 2, 'b');
  await expectClaimed('user:7');

  await home.flushall();
  const id = (await next.cluster('MYID')) as string;
  for (const node of nodes) await node.cluster('SETSLOT', slot, 'NODE', id);
  await fill();
  await expectWatchedBy(next);
  await next.zadd(keys.group('user:8'), 1, 'a', 2, 'b');
  await expectClaimed('user:8');
  await watch.close();
  await broker.close();
});
