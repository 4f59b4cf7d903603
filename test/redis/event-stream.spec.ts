import { describe, expect, it } from 'vitest';
import { useBroker } from './broker-fixture.js';

const fixture = useBroker();

describe('the stream of events in Redis', () => {
  it('is one bounded key that is forgotten after a week', async () => {
    const { broker, redis, keyspace } = fixture;
    await broker.appendEvents(
      Array.from({ length: 1_200 }, () => Buffer.from('e')),
      100,
    );
    expect(await redis.xlen(keyspace.eventStream)).toBeLessThanOrEqual(250);
    expect(await redis.ttl(keyspace.eventStream)).toBeGreaterThan(604_700);
    expect(await broker.queues()).toEqual([]); // Go's tools see nothing of it
  });
});
