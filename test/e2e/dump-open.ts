import type { Redis } from 'ioredis';

const MOST_TASKS = 20;
const MOST_BYTES = 300;

const shown = (bytes: Buffer): string =>
  bytes
    .subarray(0, MOST_BYTES)
    .toString('latin1')
    .replace(/[^ -~]+/g, '·');

async function dumpHash(redis: Redis, key: string): Promise<string[]> {
  const fields = Object.entries(await redis.hgetallBuffer(key));
  return fields.map(([field, value]) => `  ${field}: ${shown(value)}`);
}

/** What Redis has of tasks that have not ended, and of what is between queues, for somebody who wants to know why. */
export async function dumpOpen(redis: Redis): Promise<string> {
  const lines = [`now: ${Date.now()}`, `places: ${(await redis.smembers('asynq:linked')).join(' ')}`];
  const keys = (await redis.keys('asynq:{*}:*')).toSorted();
  const tasks = new Set(keys.filter((key) => key.includes('}:t:')));
  const archived = await Promise.all([...tasks].map(async (key) => [key, await redis.hget(key, 'state')] as const));
  for (const [key, state] of archived) if (state === 'archived' || state === 'completed') tasks.delete(key);
  lines.push(`${tasks.size} tasks, the first of them:`);
  for (const key of [...tasks].slice(0, MOST_TASKS)) lines.push(key, ...(await dumpHash(redis, key)));
  for (const key of keys) {
    if (/\}:(?:links|outbox|links_progress)$/.test(key)) lines.push(key, ...(await dumpHash(redis, key)));
    else if (/\}:(?:lease|scheduled|retry|held)$/.test(key)) {
      lines.push(`${key}: ${(await redis.zrange(key, '0', String(MOST_TASKS), 'WITHSCORES')).join(' ')}`);
    } else if (/\}:(?:pending|active)$/.test(key))
      lines.push(`${key}: ${(await redis.lrange(key, 0, '-1')).join(' ')}`);
    else if (/\}:(?:offer:.*|links_lease)$/.test(key)) lines.push(key);
  }
  return lines.join('\n');
}
