/*
 * A server in a process of its own, for growth.mjs' `serverProcesses`. Its only argument is JSON: `port`; `options` of the server; `limits` of its
 * handler, and whether they hold `keyed` by the payload; `fair`: the names of fair queues; `takes`: milliseconds that a task takes.
 *
 * The payload of a task is a number. Each start is recorded by the clock that all processes of a machine share. The parent asks
 * with a message: `begin`, `records` (replied with numbers, starts and, when tasks take time, ends) or `stop`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { library } from './library.mjs';

const { RedisBroker } = await library('broker/redis/redis-broker.js');
const { RedisConnections } = await library('broker/redis/connection/connections.js');
const { Server } = await library('server/server.js');

const { port, options, limits, keyed, fair = [], takes = 0 } = JSON.parse(process.argv[2]);
const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port }));
for (const queue of fair) broker.fairQueues.add(queue);

/** Milliseconds, with three digits behind. */
const now = () => Number(process.hrtime.bigint() / 1000n) / 1000;
let [numbers, starts, ends] = [[], [], []];

const record = ({ payload }) => {
  numbers.push(Number(payload.toString()));
  starts.push(now());
};
const handle =
  takes === 0
    ? record
    : async (task) => {
        record(task);
        const at = starts.length - 1;
        const mine = ends;
        await pause(takes);
        mine[at] = now();
      };
const limitKey = keyed ? ({ payload }) => payload.toString() : undefined;
const server = new Server({ broker, handlers: [{ pattern: 'bench', handle, limits, limitKey }], options });

process.on('message', async (message) => {
  if (message === 'begin') await server.start();
  if (message === 'stop') {
    await server.shutdown();
    await broker.close();
    process.disconnect();
    return;
  }
  const { heapUsed } = process.memoryUsage();
  process.send({ numbers, starts, ends, heapUsed, cpu: process.cpuUsage() });
  [numbers, starts, ends] = [[], [], []];
});
process.send('ready');
