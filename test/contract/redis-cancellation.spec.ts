import { describe, expect } from 'vitest';
import { CANCELLATION_SECONDS } from '../../lib/broker/cancellation.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { it, type RedisDriver } from './redis-fixture.js';

const { cancellations, cancellationDetails } = new Keyspace();

describe('recorded cancellations in Redis', () => {
  const record = (driver: RedisDriver, id: string) =>
    driver.broker.cancellation.recordCancellation({
      id,
      at: driver.clock.now(),
      outcome: 'archive',
      reason: 'r',
    });

  it('are removed: old ones by the next one, all of them by their expiry', async ({ driver }) => {
    const { redis, clock } = driver;
    await record(driver, 'old');
    for (const key of [cancellations, cancellationDetails]) {
      expect(await redis.ttl(key)).toBeGreaterThan(CANCELLATION_SECONDS - 30);
    }
    clock.advance(CANCELLATION_SECONDS * 1000 + 1);
    await record(driver, 'new');
    expect(await redis.zrange(cancellations, '0', '-1')).toEqual(['new']);
    expect(await redis.hkeys(cancellationDetails)).toEqual(['new']);
  });

  it.for(['no JSON', 'null', '7', '{"id":"a"}', '{"id":"a","at":1,"outcome":"explode"}'])(
    'are skipped when they are damaged: %s',
    async (details, { driver }) => {
      const { broker, redis, clock } = driver;
      await record(driver, 'a');
      await record(driver, 'b');
      await redis.hset(cancellationDetails, 'a', details);
      expect(await broker.cancellation.findCancellations(['a', 'b'])).toMatchObject([{ id: 'b' }]);
      await broker.cancellation.noteCancelled([
        { id: 'a', at: clock.now(), queue: 'q' },
        { id: 'b', at: clock.now(), queue: 'q' },
      ]);
      expect(await broker.cancellation.findCancellations(['a', 'b'])).toMatchObject([{ id: 'b', acted: ['q'] }]);
      await redis.hdel(cancellationDetails, 'b');
      expect(await broker.cancellation.findCancellations(['b'])).toEqual([]);
    },
  );

  it('cost one small command while there are none', async ({ driver }) => {
    const { broker, redis } = driver;
    await broker.monitoring.ping();
    await redis.config('RESETSTAT');
    expect(
      await broker.cancellation.findCancellations(Array.from({ length: 1_000 }, (_, index) => `t${index}`)),
    ).toEqual([]);
    const stats = await redis.info('commandstats');
    expect(stats).toContain('cmdstat_exists:calls=1');
    expect(stats).not.toContain('cmdstat_eval');
  });
});
