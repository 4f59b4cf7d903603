import { expect, it } from 'vitest';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { request } from '../support/messages.js';
import { connectionsTo, observe, ownServer } from './support.js';

const GROUPS = 2_000;

it('claims one group after the other without beginning its search anew', async () => {
  const { port } = await ownServer();
  const client = observe(port);
  const broker = new RedisBroker(connectionsTo({ host: '127.0.0.1', port }));
  const requests = Array.from({ length: GROUPS }, (_, n) => request({ groupKey: `group ${n}` }));
  await broker.producer.enqueue('default', requests);
  const claimed = new Set<string>();
  for (let calls = 0; calls < GROUPS / 10; calls++) {
    const { sets } = await broker.groups.claimDueSets(
      'default',
      () => ({ gracePeriod: 60, maxDelay: 0, maxSize: 1 }),
      10,
    );
    for (const { group } of sets) claimed.add(group);
  }
  expect(claimed.size).toBe(GROUPS);
  const scans = Number(/^cmdstat_sscan:calls=(\d+)/m.exec(await client.info('commandstats'))![1]);
  // A search reads about 100 names a step; to begin anew for each 10 groups would take 2,000 steps.
  expect(scans).toBeLessThan(GROUPS / 50);
});
