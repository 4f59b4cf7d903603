/*
 * A process with a server whose handlers never end, for lock-kill.spec.ts, which kills it. Arguments: host and port of Redis. Writes the id of each
 * task that has begun.
 */
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';

const [host, port] = process.argv.slice(-2) as [string, string];
const broker = new RedisBroker(new RedisConnections({ host, port: Number(port) }));
const handle = ({ id }: TaskContext): Promise<never> => {
  process.stdout.write(`${id}\n`);
  return new Promise(() => undefined);
};
await new Server({ broker, handlers: [{ pattern: 'lock:', handle }], options: { concurrency: 30 } }).start();
// It does not outlive its driver.
process.stdin.resume().on('end', () => process.exit(0));
