import { number, pause, request, time } from '../growth.mjs';

export const name = 'queues of one idle server';
export const asked = 'under 1,000 commands/s and p99 under 10 ms at 5,000';

export async function measure(growth) {
  const [queues, tasks] = [growth.size(5_000, 100), growth.size(400, 5)];
  const names = Array.from({ length: queues }, (_, index) => `q${index}`);
  let began = () => undefined;
  await growth
    .server({ queues: names }, { handlers: [{ pattern: 'bench', handle: () => began(performance.now()) }] })
    .start();
  await pause(growth.size(45_000, 100)); // the first look at all of them
  const seconds = growth.size(20, 0.1);
  const before = { commands: sum(await growth.calls()), time: await growth.redisTime() };
  await pause(seconds * 1000);
  const commands = (sum(await growth.calls()) - before.commands) / seconds;
  const redis = ((await growth.redisTime()) - before.time) / seconds;
  const broker = growth.broker();
  const delays = [];
  for (let count = 0; count < tasks; count++) {
    const queue = names[Math.floor(Math.random() * queues)];
    const ran = new Promise((resolve) => (began = resolve));
    const start = performance.now();
    await broker.producer.enqueue(queue, [request(queue)]);
    delays.push((await ran) - start);
    await pause(Math.random() * 40);
  }
  delays.sort((a, b) => a - b);
  const p99 = delays[Math.floor(delays.length * 0.99)];
  return {
    now:
      `${number(queues)} queues: ${number(commands)} commands/s, ${time(redis)} of Redis a second; ` +
      `start p50 ${time(delays[delays.length >> 1])}, p99 ${time(p99)}`,
    holds: commands < 1_000 && p99 < 10,
  };
}

const sum = (calls) => Object.values(calls).reduce((total, count) => total + count, 0);
