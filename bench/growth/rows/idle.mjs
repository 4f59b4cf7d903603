import { number, pause, time } from '../growth.mjs';

export const name = 'idle servers and queues';
export const asked = 'under 1,000 commands/s at 200 × 20';

export async function measure(growth) {
  const [servers, queues] = [growth.size(200, 8), growth.size(20, 3)];
  const names = Array.from({ length: queues }, (_, index) => `q${index}`);
  const handlers = [{ pattern: 'bench', handle: () => undefined }];
  for (let count = 0; count < servers; count++) await growth.server({ queues: names }, { handlers }).start();
  await pause(growth.size(60_000, 100)); // until the last standby sleeps
  const seconds = growth.size(20, 0.1);
  const before = { commands: sum(await growth.calls()), time: await growth.redisTime() };
  await pause(seconds * 1000);
  const commands = (sum(await growth.calls()) - before.commands) / seconds;
  const redis = ((await growth.redisTime()) - before.time) / seconds;
  return {
    now: `${servers} × ${queues}: ${number(commands)} commands/s, those of scripts included; ${time(redis)} of Redis a second`,
    holds: commands < 1_000,
  };
}

const sum = (calls) => Object.values(calls).reduce((total, count) => total + count, 0);
