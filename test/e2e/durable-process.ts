/*
 * A worker process for durability.spec.ts: runs tasks of the type `work` on the Redis of the port given as first argument, each for up to
 * the milliseconds given as second, and prints the id of each task it has finished. Ends with its standard input, or on SIGTERM.
 */
import { writeSync } from 'node:fs';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Server } from '../../lib/server/server.js';

const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: Number(process.argv[2]) }));
const longest = Number(process.argv[3]); // milliseconds
/**
 * Returns when the line has left: `process.stdout` keeps what a busy reader has no room for, and a killed
 * process takes it along.
 */
const print = (line: string): void => void writeSync(1, `${line}\n`);
const handle = async ({ id }: { id: string }): Promise<void> => {
  await new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * longest)); // the work
  print(`ran ${id}`);
};
const server = new Server({
  broker,
  handlers: [{ pattern: 'work', handle }],
  options: { concurrency: 40, retryDelay: () => 0, taskCheckInterval: 100 },
});
server.events.on('queueUnreachable', () => print('unreachable'));
server.events.on('queueReachable', () => print('reachable'));
await server.start();
print('ready');
process.stdin.resume();
const end = async (): Promise<void> => {
  await server.shutdown();
  await broker.close();
  process.exit(0);
};
process.stdin.on('end', end);
process.once('SIGTERM', end);
