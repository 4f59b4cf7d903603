import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import type { LockInfo } from '../../lib/inspector/locks.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { startRedis } from '../support/redis.js';
import { endStaleLeases, last, PATIENCE, repeatUntil, SECONDS, TIMEOUT_MS } from './chaos.js';
import { RepeatJudge } from './repeat-judge.js';

const KEYS = new Keyspace().queue('default');
const STATES = ['pending', 'active', 'scheduled', 'retry', 'waiting'] as const;
/** Locks of these end by their time alone. */
const TIMED = /^(throttle|expired):/;

async function locksOf(inspector: AsynqInspector): Promise<LockInfo[]> {
  const found: LockInfo[] = [];
  for (let cursor: string | undefined = '0'; cursor !== undefined;) {
    const page = await inspector.locks('default', { cursor });
    found.push(...page.locks);
    ({ cursor } = page);
  }
  return found;
}

describe('chaos of repeats', () => {
  it(
    'makes of one intent neither two tasks nor none, while servers, clients and Redis are killed',
    async () => {
      const server = await startRedis({ appendOnly: true });
      onTestFinished(() => server.stop());
      const { host, port } = server;
      const redis = new Redis(port, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
      redis.on('error', () => undefined);
      onTestFinished(() => redis.disconnect());
      const broker = new RedisBroker(new RedisConnections({ host, port }));
      const inspector = new AsynqInspector(broker);
      const judge = new RepeatJudge({ connection: { host, port } });
      onTestFinished(() => judge.kill().then(() => broker.close()));

      await Promise.all((['server', 'server', 'client', 'client'] as const).map((role) => judge.start(role)));
      const end = Date.now() + SECONDS * 1000;
      const endLeases = async (): Promise<void> => {
        for (const id of await endStaleLeases(redis, KEYS)) judge.leaseEnded(id);
      };
      const repeat = (interval: number, what: () => Promise<void>) => repeatUntil(end, interval, what);
      await Promise.all([
        repeat(1_500 * PATIENCE, () => judge.replace('server')),
        repeat(2_000 * PATIENCE, () => judge.replace('client')),
        repeat(3_000 * PATIENCE, () => server.restart().then(() => judge.count('killed Redis'))),
        repeat(2_000, endLeases),
      ]);

      await judge.stop('client');
      const open = async (): Promise<string[]> => {
        await endLeases();
        const info = await inspector.getQueueInfo('default');
        return STATES.filter((state) => info[state] > 0).map((state) => `${info[state]} tasks are ${state}`);
      };
      expect(await last(open, 60_000)).toEqual([]);
      await judge.stop('server');
      if (SECONDS > 60) console.log(judge.figures);
      expect(judge.faults()).toEqual([]);
      expect((await inspector.getQueueInfo('default')).archived).toBe(0);
      const locks = await locksOf(inspector);
      expect(locks.filter(({ name, expiresAt }) => !TIMED.test(name) || expiresAt === undefined)).toEqual([]);
      for (const key of await redis.keys(`${KEYS.base}followed:*`)) expect(await redis.ttl(key)).toBeGreaterThan(0);
    },
    TIMEOUT_MS,
  );
});
