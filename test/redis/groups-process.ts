/*
 * A server of a fleet that aggregates groups, for groups-fleet.spec.ts, which kills and freezes it. Arguments: the connection as JSON, the queue,
 * the options of its server as JSON. Writes `maintains` when it begins to look for groups that are due, and `rests` when others do. What it
 * makes of a group has the payloads of the tasks, line by line, and takes its time.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { ConnectionInput } from '../../lib/broker/redis/connection/connection-options.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { prepared } from '../../lib/enqueue/prepared-task.js';
import { Server } from '../../lib/server/server.js';
import type { ServerOptions } from '../../lib/server/options.js';
import { request } from '../support/messages.js';

const [connection, queue, given] = process.argv.slice(-3) as [string, string, string];
const options = JSON.parse(given) as ServerOptions;
const broker = new RedisBroker(new RedisConnections(JSON.parse(connection) as ConnectionInput));
const watchGroups = broker.groups.watchGroups.bind(broker.groups);
broker.groups.watchGroups = (name) => {
  process.stdout.write('maintains\n');
  const watch = watchGroups(name);
  const close = watch.close.bind(watch);
  watch.close = () => {
    process.stdout.write('rests\n');
    return close();
  };
  return watch;
};
const server = new Server({
  broker,
  handlers: [],
  aggregators: [
    {
      pattern: '',
      read: ({ id, type, payload, headers = {} }) => ({ id, type, payload, headers }),
      aggregate: async (_queue, _group, tasks) => {
        await pause(Math.random() * 20);
        const payload = Buffer.from(tasks.map(({ payload }) => String(payload)).join('\n'));
        return prepared(request({ id: randomUUID(), type: 'whole', queue, payload }), 0);
      },
    },
  ],
  options: { ...options, queues: [queue] },
});
await server.start();
process.stdout.write('started\n');
// It does not outlive its driver.
process.stdin.resume().on('end', () => process.exit(0));
