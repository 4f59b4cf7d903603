import { number, pause, time } from '../growth.mjs';

export const name = 'a rate for each of many keys, three servers';
export const asked = 'never more in any window, 95 % of it used';

const RATE = { max: 5, window: 1_000 };

/** `KEYS=100` measures fewer keys: 1,000 are 5,000 starts a second, too many for processors that other work keeps busy. */
export async function measure(growth) {
  const keys = Number(process.env.KEYS ?? growth.size(1_000, 10));
  const texts = [];
  let holds = true;
  for (const way of ['fairness', 'limitBy']) {
    const { used, allowed, begun, late, load } = await run(growth, keys, way);
    const text = `${inWords(allowed)} as servers let tasks start, ${inWords(begun)} as handlers began, at most ${time(late)} later`;
    texts.push(`${way}: ${(used * 100).toFixed(1)} % used, ${text}, ${load}`);
    holds &&= used >= 0.95 && allowed.exceeded === 0;
  }
  return { now: `${number(keys)} keys, ${RATE.max} per second: ${texts.join('; ')}`, holds };
}

/** Every key has more tasks than its rate lets start. */
async function run(growth, keys, way) {
  await growth.client.flushall();
  const isFair = way === 'fairness';
  const broker = growth.broker();
  if (isFair) broker.fairQueues.add('default');
  const [warm, seconds] = growth.size([5, 30], [0.5, 1]);
  const count = Math.ceil(keys * RATE.max * (warm + seconds + 3) * 1.05);
  await growth.fill(broker, 'default', count, (index) => {
    const key = index % keys;
    const payload = Buffer.from(`${key}`);
    return isFair ? { payload, headers: { 'asynq-fairness': `1 0 ${RATE.max} ${RATE.window} ${key}` } } : { payload };
  });
  const limits = isFair ? undefined : { rateLimit: { max: RATE.max, per: RATE.window } };
  const settings = { options: { concurrency: 50 }, limits, keyed: !isFair, fair: isFair ? ['default'] : [] };
  const servers = await growth.serverProcesses(3, settings);
  await servers.begin();
  await pause(warm * 1000);
  const before = await servers.records();
  const redis = await growth.redisTime();
  await pause(seconds * 1000);
  const after = await servers.records();
  const shares = [
    ((await growth.redisTime()) - redis) / 1000,
    ...after.map(({ cpu }, at) => (cpu.user + cpu.system - before[at].cpu.user - before[at].cpu.system) / 1e6),
  ].map((used) => ((used / seconds) * 100).toFixed(0));
  await servers.stop();
  const started = after.reduce((sum, { starts }) => sum + starts.length, 0);
  const load = `Redis ${shares[0]} %, servers ${shares.slice(1).join(' + ')} % of a core`;
  const records = [...before, ...after];
  let late = 0;
  for (const { looks, starts } of records)
    for (const [at, look] of looks.entries()) late = Math.max(late, starts[at] - look);
  const used = started / (keys * RATE.max * seconds);
  return { used, allowed: exceeding(records, 'looks'), begun: exceeding(records, 'starts'), late, load };
}

const inWords = ({ exceeded, worst }) =>
  exceeded === 0 ? 'no window exceeded' : `${number(exceeded)} windows exceeded, by ${time(worst)} at most,`;

/**
 * How many windows of a key, each beginning with a start, have one start more than they may, and by how much the worst of these is too short.
 *
 * @param which 'looks': when the server last looked at its clock before the handler, which is what it promises; 'starts': when the handler
 *   began, which is later by as long as the machine stopped the process in between
 */
function exceeding(records, which) {
  const times = new Map();
  for (const { numbers, [which]: at } of records) {
    numbers.forEach((key, index) => times.set(key, [...(times.get(key) ?? []), at[index]]));
  }
  let [exceeded, worst] = [0, 0];
  for (const list of times.values()) {
    list.sort((a, b) => a - b);
    for (let at = RATE.max; at < list.length; at++) {
      const short = RATE.window - (list[at] - list[at - RATE.max]);
      if (short <= 0) continue;
      exceeded += 1;
      worst = Math.max(worst, short);
    }
  }
  return { exceeded, worst };
}
