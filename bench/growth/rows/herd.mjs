import { number, pause, request, time } from '../growth.mjs';

export const name = 'one task for many idle servers';
export const asked = 'a few wake; p50 under 2 ms at 200 servers';

export async function measure(growth) {
  const [servers, tasks] = [growth.size(200, 8), growth.size(100, 3)];
  let began = () => undefined;
  const handlers = [{ pattern: 'bench', handle: () => began(performance.now()) }];
  const started = [];
  for (let count = 0; count < servers; count++) started.push(growth.server({}, { handlers }));
  for (const server of started) await server.start();
  await pause(growth.size(60_000, 100)); // until the last standby sleeps
  const broker = growth.broker();
  const runOne = async () => {
    const ran = new Promise((resolve) => (began = resolve));
    const start = performance.now();
    await broker.producer.enqueue('default', [request('default')]);
    return (await ran) - start;
  };
  for (let count = 0; count < 5; count++) {
    await runOne();
    await pause(200);
  }
  const notices = () => started.map((server) => server.stats().wakeups.notices);
  const [woken, delays, commands] = [[], [], []];
  for (let count = 0; count < tasks; count++) {
    const [before, calls] = [notices(), sum(await growth.calls())];
    delays.push(await runOne());
    await pause(100); // the others find out
    commands.push(sum(await growth.calls()) - calls);
    woken.push(notices().filter((count, index) => count > before[index]).length);
  }
  const p50 = median(delays);
  return {
    now: `${servers} servers: ${median(woken)} wake, ${number(median(commands))} commands, start p50 ${time(p50)}`,
    holds: median(woken) <= 10 && p50 < 2,
  };
}

const sum = (calls) => Object.values(calls).reduce((total, count) => total + count, 0);
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
