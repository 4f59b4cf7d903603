/** The two processes share tasks through Redis. */
export const redisUrl = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
