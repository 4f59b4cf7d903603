/* Every error of this library, by what it is about. The rest of lib imports them from here. */
export * from './errors/asynq-error.js';
export * from './errors/attempts.js';
export * from './errors/batches.js';
export * from './errors/redis.js';
export * from './errors/results.js';
export * from './errors/schedules.js';
export * from './errors/setup.js';
export * from './errors/tasks.js';
export * from './errors/workflows.js';
