import { library, number, time } from '../growth.mjs';

const { AsynqClient } = await library('client/client.js');

export const name = 'large payloads enqueued at once';
export const asked = 'the payloads once, and no more than 256 MB besides';

export async function measure(growth) {
  const client = new AsynqClient(growth.broker());
  const count = growth.size(10_000, 50);
  const payload = Buffer.alloc(100_000, 'x');
  await client.enqueue('bench', payload);
  const before = process.memoryUsage().rss;
  let most = before;
  const timer = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 1);
  const stall = await growth.stall(() =>
    Promise.all(Array.from({ length: count }, () => client.enqueue('bench', payload))),
  );
  clearInterval(timer);
  await client.close();
  const megabytes = (most - before) / 1e6;
  const payloads = count / 10; // MB: each call has read its own
  return {
    now: `${number(count)} × 100 kB: ${number(megabytes)} MB, of them payloads ${number(payloads)} MB; longest stall ${time(stall)}`,
    holds: megabytes < payloads + 256,
  };
}
