/*
 * A process with a server whose handler never ends, for attempts.spec.ts, which kills it. Arguments: host and port of Redis. Writes a line when
 * the handler has begun.
 */
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Server } from '../../lib/server/server.js';

const [host, port] = process.argv.slice(-2) as [string, string];
const broker = new RedisBroker(new RedisConnections({ host, port: Number(port) }));
const handle = (): Promise<never> => {
  process.stdout.write('begun\n');
  return new Promise(() => undefined);
};
await new Server({ broker, handlers: [{ pattern: 'test:task', handle }] }).start();
// It does not outlive its driver.
process.stdin.resume().on('end', () => process.exit(0));
