import { library, number, request, time } from '../growth.mjs';

const { prepared } = await library('enqueue/prepared-task.js');

export const name = 'groups that are due at once';
export const asked = 'a scan per 100 groups, and some';

export async function measure(growth) {
  const groups = growth.size(50_000, 300);
  const broker = growth.broker();
  await growth.fill(broker, 'default', groups, (index) => ({ groupKey: `user:${index}` }));
  const aggregator = {
    pattern: '',
    read: ({ id, type, payload }) => ({ id, type, payload, headers: {} }),
    aggregate: async (queue) => prepared(request(queue), 0),
  };
  const server = growth.server({ groupMaxSize: 1 }, { aggregators: [aggregator] });
  const before = { ...(await growth.calls()), time: await growth.redisTime() };
  const start = performance.now();
  let left = groups;
  const done = new Promise((resolve) => server.events.on('groupAggregated', () => --left === 0 && resolve()));
  await server.start();
  await done;
  const took = performance.now() - start;
  const scans = (await growth.calls()).sscan - (before.sscan ?? 0);
  const redis = (await growth.redisTime()) - before.time;
  return {
    now: `${number(groups)} groups: ${number(scans)} SSCAN, ${time(took)}, ${time(redis)} of Redis`,
    holds: scans < groups / 50,
  };
}
