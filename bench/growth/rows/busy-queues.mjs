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

export async function measure(growth) {
  const tasks = growth.size(50_000, 400);
  await costs(growth, 1, tasks); // the first run also warms up
  const one = await costs(growth, 1, tasks);
  const many = await costs(growth, growth.size(100, 20), tasks);
  const cost = ({ redis, node }) => `${redis.toFixed(1)} µs of Redis and ${node.toFixed(1)} of Node a task`;
  return {
    now: `100: ${cost(many)}; one: ${cost(one)}`,
    holds: many.redis + many.node <= 1.5 * (one.redis + one.node),
  };
}
