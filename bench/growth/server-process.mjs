/*
 * A server in a process of its own, for growth.mjs' `serverProcesses`. Its only argument is JSON: `port`; `options` of the server; `limits` of its
 * handler, and whether they hold `keyed` by the payload; `fair`: the names of fair queues; `takes`: milliseconds that a task takes.
 *
 * The payload of a task is a number. Each start is recorded by the clock that all processes of a machine share, and so is the server's last look
 * at its clock before: what it decides there is what it promises; what stops the process between the two it cannot know. The parent asks
 * with a message: `begin`, `records` (replied with numbers, looks, starts and, when tasks take time, ends) or `stop`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { library } from './library.mjs';

const { SystemClock } = await library('clock.js');
const { RedisBroker } = await library('broker/redis/redis-broker.js');
const { RedisConnections } = await library('broker/redis/connection/connections.js');
const { Server } = await library('server/server.js');

const { port, options, limits, keyed, fair = [], takes = 0 } = JSON.parse(process.argv[2]);

/** Milliseconds, with three digits behind. */
const now = () => Number(process.hrtime.bigint() / 1000n) / 1000;
let [numbers, looks, starts, ends] = [[], [], [], []];
let looked = 0;

class SeenClock extends SystemClock {
  elapsed() {
    looked = now();
    return super.elapsed();
  }
}

const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port }), { clock: new SeenClock() });
for (const queue of fair) broker.fairQueues.add(queue);

const record = ({ payload }) => {
  numbers.push(Number(payload.toString()));
  looks.push(looked);
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
  process.send({ numbers, looks, starts, ends, heapUsed, cpu: process.cpuUsage() });
  [numbers, looks, starts, ends] = [[], [], [], []];
});
process.send('ready');
