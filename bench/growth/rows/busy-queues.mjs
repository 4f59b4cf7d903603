export const name = 'busy queues of a server';
export const asked = '100 cost at most 1.5 times one';

/** What a task costs Redis and this process, in microseconds of their processors. */
async function costs(growth, queues, tasks) {
  const broker = growth.broker();
  const names = Array.from({ length: queues }, (_, index) => `of ${queues}: ${index}`);
  for (const queue of names) await growth.fill(broker, queue, tasks / queues);
  let left = tasks;
  let finish;
  const done = new Promise((resolve) => (finish = resolve));
  const handle = () => void (--left === 0 && finish());
  const server = growth.server({ queues: names, concurrency: 100 }, { handlers: [{ pattern: 'bench:task', handle }] });
  const redis = await growth.redisTime();
  const before = process.cpuUsage();
  await server.start();
  await done;
  await server.shutdown();
  const { user, system } = process.cpuUsage(before);
  return { redis: (((await growth.redisTime()) - redis) * 1000) / tasks, node: (user + system) / tasks };
}

const ROUNDS = 5;

/** Each round has both, one after the other: the speed of a shared machine changes by more than the difference. */
export async function measure(growth) {
  const tasks = growth.size(50_000, 400);
  const [rounds, queues] = growth.size([ROUNDS, 100], [1, 20]);
  await costs(growth, 1, tasks); // the first runs also warm up
  await costs(growth, queues, tasks);
  const pairs = [];
  for (let round = 0; round < rounds; round++) {
    const one = await costs(growth, 1, tasks);
    const many = await costs(growth, queues, tasks);
    pairs.push({ one, many, ratio: (many.redis + many.node) / (one.redis + one.node) });
  }
  pairs.sort((a, b) => a.ratio - b.ratio);
  const { one, many, ratio } = pairs[Math.floor(rounds / 2)];
  const cost = ({ redis, node }) => `${redis.toFixed(1)} µs of Redis and ${node.toFixed(1)} of Node a task`;
  const range = `${ratio.toFixed(2)} times, the median of ${rounds} (${pairs[0].ratio.toFixed(2)} to ${pairs.at(-1).ratio.toFixed(2)})`;
  return { now: `${queues}: ${cost(many)}; one: ${cost(one)}; ${range}`, holds: ratio <= 1.5 };
}
