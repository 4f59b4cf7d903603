/*
 * A worker process for durability.spec.ts: runs tasks of the type `work` on the Redis of the port given as first argument, each for up to
 * the milliseconds given as second, and prints the id of each task it has finished. Ends with its standard input, or on SIGTERM.
 */
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Server } from '../../lib/server/server.js';

const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: Number(process.argv[3]) }));
const longest = Number(process.argv[4]); // milliseconds
const handle = async ({ id }: { id: string }): Promise<void> => {
  await new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * longest)); // the work
  process.stdout.write(`ran ${id}\n`);
};
const server = new Server({
  broker,
  handlers: [{ pattern: 'work', handle }],
  options: { concurrency: 40, retryDelay: () => 0, taskCheckInterval: 100 },
});
server.events.on('queueUnreachable', () => process.stdout.write('unreachable\n'));
server.events.on('queueReachable', () => process.stdout.write('reachable\n'));
await server.start();
process.stdout.write('ready\n');
process.stdin.resume();
const end = async (): Promise<void> => {
  await server.shutdown();
  await broker.close();
  process.exit(0);
};
process.stdin.on('end', end);
process.once('SIGTERM', end);
