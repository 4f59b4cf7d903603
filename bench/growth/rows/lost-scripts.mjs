import { number, request } from '../growth.mjs';

export const name = 'calls under way when Redis loses its scripts';
export const asked = 'one text per script';

export async function measure(growth) {
  const count = growth.size(5_000, 50);
  const broker = growth.broker();
  await broker.producer.enqueue('default', [request('default')]);
  await growth.client.script('FLUSH');
  const before = (await growth.calls()).eval ?? 0;
  await Promise.all(Array.from({ length: count }, () => broker.producer.enqueue('default', [request('default')])));
  const { eval: texts = 0 } = await growth.calls();
  return { now: `${number(count)} calls: ${number(texts - before)} EVAL`, holds: texts - before === 1 };
}
