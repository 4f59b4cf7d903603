/*
 * A process with a server whose handler is limited in the fleet, for limited-kill.spec.ts, which kills it. Arguments: host and port of Redis, how
 * many may run at a time. Each attempt is in the set `oracle:running` while its handler runs, and `oracle:most` is the most there have been.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Server } from '../../lib/server/server.js';

const [host, port, most] = process.argv.slice(-3) as [string, string, string];
const oracle = new Redis(Number(port), host);
const BEGIN = `
redis.call('SADD', KEYS[1], ARGV[1])
local running = redis.call('SCARD', KEYS[1])
if running > tonumber(redis.call('GET', KEYS[2]) or '0') then redis.call('SET', KEYS[2], running) end
redis.call('INCR', KEYS[3])`;
let attempts = 0;
const handle = async (): Promise<void> => {
  const name = `${process.pid}:${attempts++}`;
  await oracle.eval(BEGIN, 3, 'oracle:running', 'oracle:most', 'oracle:begun', name);
  await pause(Math.random() * 10);
  await oracle.srem('oracle:running', name);
};
const broker = new RedisBroker(new RedisConnections({ host, port: Number(port) }));
const limits = { globalConcurrency: Number(most) };
// With few slots no server has most of the tokens: those of one that is killed are taken for half a minute.
const options = { concurrency: 4 };
await new Server({ broker, handlers: [{ pattern: 'test:task', handle, limits }], options }).start();
process.stdout.write('started\n');
// It does not outlive its driver.
process.stdin.resume().on('end', () => process.exit(0));
