import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import type { Clock } from '../../lib/clock.js';
import { SystemClock } from '../../lib/clock.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { Server } from '../../lib/server/server.js';
import { request } from '../support/messages.js';
import { startRedis, type RedisProcess } from '../support/redis.js';

let redis: RedisProcess;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** The system's clock, that many milliseconds ahead. */
class ShiftedClock extends SystemClock {
  constructor(private readonly ahead: number) {
    super();
  }
  override now(): number {
    return super.now() + this.ahead;
  }
}

function connect(clock: Clock = new SystemClock()): RedisBroker {
  const broker = new RedisBroker(new RedisConnections({ host: redis.host, port: redis.port }), { clock });
  onTestFinished(() => broker.close());
  return broker;
}

it.for([
  [600_000, /is (10m|9m5\d)\w* ahead of that of Redis/],
  [-600_000, /is (10m|9m5\d)\w* behind that of Redis/],
  [0, undefined],
] as const)('explains a task with the clock of a running server, which is %i ms ahead', async ([ahead, words]) => {
  const broker = connect();
  const serverBroker = connect(new ShiftedClock(ahead));
  const server = new Server({ broker: serverBroker, handlers: [{ pattern: 't', handle: () => undefined }] });
  onTestFinished(() => server.shutdown());
  const published = new Promise<void>((resolve) => {
    const { monitoring } = serverBroker;
    const write = monitoring.writeServerState.bind(monitoring);
    monitoring.writeServerState = async (...args) => {
      await write(...args);
      resolve();
    };
  });
  await server.start();
  await published;
  const { message } = request({ type: 't' });
  const processAt = Math.floor(Date.now() / 1000) + 3_600;
  await broker.producer.enqueue('default', [{ message, processAt }]);
  const { reasons } = await new AsynqInspector(broker).explain(message);
  expect(reasons.map(({ kind }) => kind)).toEqual(words ? ['scheduled', 'clock'] : ['scheduled']);
  // The time that is written with the state is a little old by then: on a busy machine by more than a second.
  if (words) expect(reasons[1]!.text).toMatch(words);
});
