import { number, time } from '../growth.mjs';

export const name = 'large tasks that run';
export const asked = 'about nothing when nothing has changed';

export async function measure(growth) {
  const tasks = growth.size(1_000, 20);
  const payload = Buffer.alloc(growth.size(1_000_000, 10_000), 'x');
  const broker = growth.broker();
  const now = Date.now();
  const of = { host: 'bench', pid: 1, serverId: 's' };
  const info = { ...of, concurrency: tasks, queues: { default: 1 }, strictPriority: false, status: 'active' };
  const server = { ...info, startTime: now, activeWorkerCount: tasks };
  const worker = (index) => ({
    ...of,
    taskId: `task ${index}`,
    taskType: 'bench:task',
    taskPayload: payload,
    queue: 'default',
    startTime: now,
    deadline: now + 60_000,
  });
  const workers = Array.from({ length: tasks }, (_, index) => worker(index));
  const publish = async () => {
    const before = await growth.redisTime();
    const longest = await growth.slowest(() => broker.monitoring.writeServerState(server, workers, 60));
    return { spent: (await growth.redisTime()) - before, longest };
  };
  const [first, next] = [await publish(), await publish()];
  return {
    now:
      `${number(tasks)} × ${number(payload.length / 1000)} kB: ${time(next.spent)} of Redis a heartbeat, ` +
      `${time(first.spent)} the first, longest command ${time(Math.max(first.longest, next.longest))}`,
    holds: next.spent < 5 && first.longest < 10,
  };
}
