/*
 * A process with a scheduler and nothing else, for scheduler-kill.spec.ts. Arguments: host and port
 * of Redis, where time begins (milliseconds since the epoch), how much faster than real time it
 * goes, and by how much the clock of this process differs. Writes the planned time of each firing.
 */
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { type Clock, SystemClock } from '../../lib/clock.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { AsynqScheduler } from '../../lib/scheduler/scheduler.js';

const [host, port, begin, speed, skew] = process.argv.slice(-5) as [string, string, string, string, string];
const real = new SystemClock();
const clock: Clock = {
  now: () => Number(begin) + (real.now() - Number(begin)) * Number(speed) + Number(skew),
  elapsed: () => real.elapsed() * Number(speed),
  after: (delay, callback) => real.after(delay / Number(speed), callback),
};
const broker = new RedisBroker(new RedisConnections({ host, port: Number(port) }), { clock });
const events = new AsynqEvents();
events.on('periodicTaskEnqueued', ({ entry }) => void process.stdout.write(`${entry.planned.getTime()}\n`));
events.on('loopFailed', ({ error }) => console.error(error));
const scheduler = new AsynqScheduler(broker, events);
scheduler.register('@every 1s', 'tick', undefined, { id: 'tick', missed: { all: 10_000 } });
scheduler.start();
// It does not outlive its driver.
process.stdin.resume().on('end', () => process.exit(0));
