/*
 * A process that opens a batch and adds rows without an end, for batches.spec.ts. Arguments: the port
 * of Redis. Writes the id of the batch, then a line for each chunk that is stored. It never closes it.
 */
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { SystemClock } from '../../lib/clock.js';
import { AsynqEvents } from '../../lib/events/events.js';

const port = Number(process.argv.at(-1));
const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port }), { clock: new SystemClock() });
const events = new AsynqEvents();
const client = new AsynqClient(broker, {}, { events });
const options = {
  name: 'killed',
  queue: 'home',
  closeWithin: '30s',
  onSuccess: ['test:success', undefined, { queue: 'calls' }],
} as const;
const batch = await client.openBatch(options);
process.stdout.write(`${batch.id}\n`);
let added = 0;
events.on('taskEnqueued', () => ++added % 500 === 0 && process.stdout.write(`${added}\n`));
function* rows() {
  for (let n = 0; ; n++) yield n;
}
// It does not outlive its driver.
process.stdin.resume().on('end', () => process.exit(0));
await batch.add('test:row', rows(), { queue: 'rows' });
