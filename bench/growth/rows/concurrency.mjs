import { number, pause, time } from '../growth.mjs';

export const name = 'a limit of tasks at a time, three servers';
export const asked = 'never more at a time, 95 % of the slots busy while tasks wait';

const LIMIT = 6;

/** `TAKES=5,20` measures only handlers that sleep for so many milliseconds. */
export async function measure(growth) {
  const times = (process.env.TAKES ?? growth.size('1,5,20,100', '20')).split(',').map(Number);
  const trip = await roundTrip(growth);
  const texts = [];
  let holds = true;
  for (const kind of ['handler', 'queue']) {
    for (const takes of times) {
      const { busy, most, lasted, servers, redis } = await run(growth, kind, takes);
      const asks = lasted / (lasted + trip);
      texts.push(
        `${kind}, ${time(lasted)}: ${percent(busy)} (one round trip between two tasks: ${percent(asks)}), ${most} at a time, ` +
          `by ${servers.join(' + ')}, Redis ${(redis * 100).toFixed(0)} %`,
      );
      holds &&= most <= LIMIT && (busy >= 0.95 || takes < 5);
    }
  }
  return { now: `limit ${LIMIT}, round trip ${trip.toFixed(2)} ms: ${texts.join('; ')}`, holds };
}

const percent = (share) => `${(share * 100).toFixed(1)} %`;

/** The median of the times that a command takes a client that does nothing else, in milliseconds. */
async function roundTrip(growth) {
  const times = [];
  for (let count = 0; count < growth.size(500, 20); count++) {
    const began = performance.now();
    await growth.client.ping();
    times.push(performance.now() - began);
  }
  return times.toSorted((a, b) => a - b)[times.length >> 1];
}

/** Handlers that sleep, of one type, more of them than can run in the time. */
async function run(growth, kind, takes) {
  await growth.client.flushall();
  const broker = growth.broker();
  const [warm, seconds] = growth.size([3, 10], [0.2, 0.3]);
  const count = Math.ceil((LIMIT * 1000 * (warm + seconds + 2)) / takes);
  await growth.fill(broker, 'default', count, (index) => ({ payload: Buffer.from(`${index}`) }));
  const limit = { globalConcurrency: LIMIT };
  const ofQueue = { options: { queues: { default: limit } } };
  const servers = await growth.serverProcesses(3, { ...(kind === 'queue' ? ofQueue : { limits: limit }), takes });
  await servers.begin();
  await pause(warm * 1000);
  const [from, began] = [now(), await growth.redisTime()];
  await pause(seconds * 1000);
  const [until, redis] = [now(), (await growth.redisTime()) - began];
  const records = await servers.records();
  if ((await growth.client.exists('asynq:{default}:pending', 'asynq:{default}:held')) === 0) {
    throw new Error(`all ${number(count)} tasks have run`);
  }
  await servers.stop();
  const runs = records.map(({ starts, ends }) => starts.map((start, at) => [start, ends[at]]));
  const all = runs.flat();
  const ended = all.filter(([, end]) => end !== undefined);
  const within = ([start, end = Infinity]) => Math.max(0, Math.min(end, until) - Math.max(start, from));
  return {
    busy: all.reduce((sum, run) => sum + within(run), 0) / (LIMIT * (until - from)),
    most: mostAtATime(ended),
    lasted: ended.reduce((sum, [start, end]) => sum + end - start, 0) / ended.length,
    servers: runs.map((own) => number(own.filter((run) => within(run) > 0).length)),
    redis: redis / (seconds * 1000),
  };
}

/** By the clock that all processes of a machine share, in milliseconds. */
const now = () => Number(process.hrtime.bigint() / 1000n) / 1000;

/** What ends in the moment in which another starts has ended before. */
function mostAtATime(runs) {
  const changes = runs.flatMap(([start, end]) => [
    [start, 1],
    [end, -1],
  ]);
  changes.sort(([a, by], [b, other]) => a - b || by - other);
  let [running, most] = [0, 0];
  for (const [, by] of changes) most = Math.max(most, (running += by));
  return most;
}
