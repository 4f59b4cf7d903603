/*
 * A process that aggregates the groups of some queues, for aggregator-kill.spec.ts. Arguments: host
 * and port of Redis, the queues, and `run` when it also runs what it makes; else it waits in each
 * queue where its name begins to say, until it gets a line: `function` is inside the aggregating
 * function, `before` the step that finishes a set, `after` that step, before its reply is known.
 * Writes `at <queue>`, and `made <queue> <lines>`.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { prepared } from '../../lib/enqueue/prepared-task.js';
import { Server } from '../../lib/server/server.js';
import { request } from '../support/messages.js';

const [host, port, queues, role] = process.argv.slice(-4) as [string, string, string, string];
const input = createInterface({ input: process.stdin });
const write = (line: string): void => void process.stdout.write(`${line}\n`);

async function reach(place: string, queue: string): Promise<void> {
  if (role === 'run' || !queue.startsWith(place)) return;
  write(`at ${queue}`);
  await once(input, 'line');
}

const broker = new RedisBroker(new RedisConnections({ host, port: Number(port) }));
const finishSet = broker.groups.finishSet.bind(broker.groups);
broker.groups.finishSet = async (set, made) => {
  await reach('before', set.queue);
  const status = await finishSet(set, made);
  await reach('after', set.queue);
  return status;
};
const server = new Server({
  broker,
  handlers:
    role === 'run' ? [{ pattern: 'whole', handle: ({ queue, payload }) => write(`made ${queue} ${payload}`) }] : [],
  aggregators: [
    {
      pattern: '',
      read: ({ id, type, payload, headers = {} }) => ({ id, type, payload, headers }),
      aggregate: async (queue, _, tasks) => {
        await reach('function', queue);
        const payload = Buffer.from(tasks.map(({ payload }) => String(payload)).join(','));
        return prepared(request({ id: randomUUID(), type: 'whole', queue, payload }), 0);
      },
    },
  ],
  options: { queues: queues.split(','), groupGracePeriod: '1s', groupMaxSize: 3 },
});
server.events.on('aggregationFailed', ({ error }) => write(`failed ${(error as { code?: string }).code}`));
await server.start();
write('ready');
// It does not outlive its driver.
input.on('close', () => process.exit(0));
