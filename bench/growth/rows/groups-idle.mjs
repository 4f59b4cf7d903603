import { number, pause, time } from '../growth.mjs';

export const name = 'groups that are not due';
export const asked = 'the cost does not grow with groups and servers';

export async function measure(growth) {
  const many = growth.size(10_000, 200);
  const few = await idle(growth, 100, 1);
  const [one, five, none] = [await idle(growth, many, 1), await idle(growth, many, 5), await idle(growth, 0, 5)];
  const text = ({ commands, redis }) => `${number(commands)} commands/s, ${time(redis)} of Redis a second`;
  return {
    now:
      `100, 1 server: ${text(few)}; ${number(many)}: ${text(one)}; ${number(many)}, 5 servers: ${text(five)}; ` +
      `no group, 5 servers: ${text(none)}`,
    holds: one.commands < few.commands && five.commands - none.commands < few.commands,
  };
}

/**
 * Idle servers beside groups that wait, with a maximal size, so that each may become due at any time. What they do once at their start,
 * and every ten minutes, is over when it is measured: they search for groups that are not listed.
 */
async function idle(growth, groups, servers) {
  await growth.client.flushall();
  const broker = growth.broker();
  await growth.fill(broker, 'default', groups, (index) => ({ groupKey: `user:${index}` }));
  const aggregator = { pattern: '', read: (task) => task, aggregate: async () => undefined };
  const options = { groupGracePeriod: '10m', groupMaxSize: 100 };
  const started = [];
  for (let count = 0; count < servers; count++) started.push(growth.server(options, { aggregators: [aggregator] }));
  for (const server of started) await server.start();
  await pause(growth.size(25_000, 100));
  const seconds = growth.size(20, 0.1);
  const [calls, began] = [sum(await growth.calls()), await growth.redisTime()];
  await pause(seconds * 1000);
  const commands = (sum(await growth.calls()) - calls) / seconds;
  const redis = ((await growth.redisTime()) - began) / seconds;
  await Promise.all(started.map((server) => server.shutdown()));
  return { commands, redis };
}

const sum = (calls) => Object.values(calls).reduce((total, count) => total + count, 0);
