import { number, pause, time } from '../growth.mjs';

export const name = 'limited handlers and queues';
export const asked = 'as without limits, but for one look per queue every 2 s';

export async function measure(growth) {
  const [handlers, queues] = [growth.size(500, 10), growth.size(10, 3)];
  const limited = await idle(growth, handlers, queues, { globalConcurrency: 1 });
  const plain = await idle(growth, handlers, queues);
  return {
    now: `${handlers} × ${queues}: ${text(limited)}; without limits ${text(plain)}`,
    holds: limited.commands < 1.1 * plain.commands + queues, // the looks are half as many as the queues,
  };
}

const text = ({ commands, redis }) => `${number(commands)} commands/s, ${time(redis)} of Redis a second`;

/** One idle server, those of scripts included. */
async function idle(growth, count, queues, limits) {
  const handlers = Array.from({ length: count }, (_, index) => {
    return { pattern: `bench:${index}:`, handle: () => undefined, limits };
  });
  const names = Array.from({ length: queues }, (_, index) => `q${index}`);
  const server = growth.server({ queues: names }, { handlers });
  await server.start();
  await pause(growth.size(5_000, 100));
  const seconds = growth.size(20, 0.1);
  const [calls, began] = [sum(await growth.calls()), await growth.redisTime()];
  await pause(seconds * 1000);
  const commands = (sum(await growth.calls()) - calls) / seconds;
  const redis = ((await growth.redisTime()) - began) / seconds;
  await server.shutdown();
  return { commands, redis };
}

const sum = (calls) => Object.values(calls).reduce((total, calls) => total + calls, 0);
