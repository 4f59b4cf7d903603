import { describe, expect } from 'vitest';
import { it } from '../contract/redis-fixture.js';

describe('the stream of events in Redis', () => {
  it('is one bounded key that expires after a week; that of the audit trail after 90 days', async ({ driver }) => {
    const { broker, redis, keyspace } = driver;
    await broker.events.appendEvents(
      'events',
      Array.from({ length: 1_200 }, () => Buffer.from('e')),
      { most: 100 },
    );
    expect(await redis.xlen(keyspace.eventStream)).toBeLessThanOrEqual(250);
    expect(await redis.ttl(keyspace.eventStream)).toBeGreaterThan(604_700);
    await broker.events.appendEvents('audit', [Buffer.from('a')], { most: 100 });
    expect(await redis.xlen('asynq:audit')).toBe(1);
    expect(await redis.ttl('asynq:audit')).toBeGreaterThan(90 * 86_400 - 100);
    expect(await broker.inspection.queues()).toEqual([]); // Go's tools see nothing of it
  });
});
