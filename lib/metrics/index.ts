/** @module nestjs-asynq/metrics */
export { AsynqMetricsModule } from './metrics.module.js';
export type { AsynqMetricsExtras, AsynqMetricsOptions } from './metrics.options.js';
export type { MetricsRegistry } from './registration.js';
