import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { slotOf } from '../../lib/broker/redis/connection/slot.js';
import { type RedisProcess, startRedis } from '../support/redis.js';

describe('slotOf', () => {
  let server: RedisProcess;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis({ args: ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'] });
    redis = new Redis(server.url);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  it.each([
    '',
    'foo',
    'asynq:{default}:pending',
    '{}x',
    'a{}{b}',
    'a{b',
    'a}b{c}',
    '{{a}}',
    'ключ:{очередь}',
    'x'.repeat(999),
  ])('agrees with CLUSTER KEYSLOT on %j', async (key) => {
    expect(slotOf(key)).toBe(await redis.cluster('KEYSLOT', key));
  });
});
