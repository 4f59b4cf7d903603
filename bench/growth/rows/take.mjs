import { number, time } from '../growth.mjs';

export const name = 'large tasks that are taken';
export const asked = 'no command above 10 ms';

export async function measure(growth) {
  const broker = growth.broker();
  const [texts, longest] = [[], []];
  for (const [kilobytes, count] of growth.size(
    [
      [50, 2_000],
      [1_000, 300],
    ],
    [[50, 20]],
  )) {
    // oxfmt-ignore
    const payload = Buffer.alloc(kilobytes * 1000, 'x');
    for (let left = count; left > 0; left -= 10) await growth.fill(broker, 'default', 10, () => ({ payload }));
    const times = await growth.commandTimes(async () => {
      let settle = [];
      do {
        const { tasks } = await broker.consumer.exchange('default', { settle, take: 256 });
        settle = tasks.map(({ lease, message: { uniqueKey } }) => ({ kind: 'done', lease, uniqueKey }));
      } while (settle.length > 0);
    });
    longest.push(times.at(-1) ?? 0);
    texts.push(`${number(kilobytes)} kB: ${time(times.at(-1) ?? 0)} (median ${time(times[times.length >> 1] ?? 0)})`);
  }
  return { now: `256 asked for, longest command at ${texts.join(', ')}`, holds: Math.max(...longest) < 10 };
}
