/*
 * A process that aggregates the groups of a queue, for aggregator-kill.spec.ts. Arguments: host and port of Redis, the queue, and where
 * it stops until it gets a line: `function` inside the aggregating function, `before` the step that finishes a set, `after` that step
 * and before its reply is known, or `nowhere`: only then it also runs what it makes. Writes `at <where>`, and `made <lines>`.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { RedisConnections } from '../../lib/broker/redis/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { Server } from '../../lib/server/server.js';
import { request } from '../support/messages.js';

const [host, port, queue, place] = process.argv.slice(-4) as [string, string, string, string];
const input = createInterface({ input: process.stdin });
const write = (line: string): void => void process.stdout.write(`${line}\n`);

async function reach(here: string): Promise<void> {
  if (here !== place) return;
  write(`at ${here}`);
  await once(input, 'line');
}

class WatchedBroker extends RedisBroker {
  override async finishSet(...args: Parameters<RedisBroker['finishSet']>): ReturnType<RedisBroker['finishSet']> {
    await reach('before');
    const status = await super.finishSet(...args);
    await reach('after');
    return status;
  }
}

const broker = new WatchedBroker(new RedisConnections({ host, port: Number(port) }));
const server = new Server({
  broker,
  handlers: place === 'nowhere' ? [{ pattern: 'whole', handle: ({ payload }) => write(`made ${payload}`) }] : [],
  aggregators: [
    {
      pattern: '',
      read: ({ id, type, payload, headers = {} }) => ({ id, type, payload, headers }),
      aggregate: async (_queue, _group, tasks) => {
        await reach('function');
        const payload = Buffer.from(tasks.map(({ payload }) => String(payload)).join(','));
        return request({ id: randomUUID(), type: 'whole', queue, payload });
      },
    },
  ],
  options: { queues: [queue], groupGracePeriod: '1s', groupMaxSize: 3 },
});
server.events.on('aggregationFailed', ({ error }) => write(`failed ${(error as { code?: string }).code}`));
server.events.on('groupsReclaimed', ({ tasks }) => write(`reclaimed ${tasks}`));
await server.start();
write('ready');
// It does not outlive its driver.
input.on('close', () => process.exit(0));
