import { Redis } from 'ioredis';
import { ASYNQ_BROKER } from 'nestjs-asynq';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { ManualClock } from '../../lib/clock.js';
import { startConsole, type TestConsole } from '../dashboard/console.js';
import { startRedis, type RedisProcess } from '../support/redis.js';

/** How long a reply of the console is kept, in milliseconds. */
export const REFRESH = 2_000;

/** A console on a Redis of its own. */
export class ConsoleOnRedis {
  readonly clock = new ManualClock();
  redis!: RedisProcess;
  /** A bare connection. */
  raw!: Redis;
  web!: TestConsole;
}

/** Starts a console for the tests of a file. Each test finds Redis empty, and no reply in the console's cache. */
export const useConsoleOnRedis = (): ConsoleOnRedis => {
  const on = new ConsoleOnRedis();
  beforeAll(async () => {
    on.redis = await startRedis();
    const { host, port } = on.redis;
    on.raw = new Redis(port, host, { protocol: 2 });
    const broker = new RedisBroker(new RedisConnections({ host, port }), { clock: on.clock });
    on.web = await startConsole(
      { access: 'destroy', refresh: REFRESH },
      {
        asynq: { connection: { host, port } },
        override: (builder) => builder.overrideProvider(ASYNQ_BROKER).useValue(broker),
      },
    );
  });
  beforeEach(async () => {
    await on.raw.flushall();
    on.clock.advance(REFRESH);
  });
  afterAll(async () => {
    await on.web?.close();
    on.raw?.disconnect();
    await on.redis?.stop();
  });
  return on;
};
