import type { AsynqHealth, HealthReport } from './asynq-health.js';
import { DEFAULT_PROBE_CACHE_MS, type LivenessOptions, type ReadinessOptions } from './health-options.js';

/** The result of an indicator for @nestjs/terminus. */
export type AsynqHealthResult<Key extends string = string> = Record<
  Key,
  { readonly status: 'up' | 'down' } & Partial<HealthReport>
>;

/**
 * An indicator for @nestjs/terminus 11 and later, which this package does not need.
 *
 * @example
 * health.check([() => asynq.isReady('asynq', { maxAge: '5m' })])
 */
export class AsynqHealthIndicator {
  constructor(private readonly health: AsynqHealth) {}

  /** See {@link AsynqHealth.live}. */
  async isLive<Key extends string = 'asynq'>(key = 'asynq' as Key, options?: LivenessOptions) {
    return indicate(key, this.health.live(options));
  }

  /** See {@link AsynqHealth.ready}. Checks share the reply of Redis for a second, see `cacheFor`. */
  async isReady<Key extends string = 'asynq'>(key = 'asynq' as Key, options?: ReadinessOptions) {
    return indicate(key, await this.health.ready({ cacheFor: DEFAULT_PROBE_CACHE_MS, ...options }));
  }
}

const indicate = <Key extends string>(key: Key, { problems, ...rest }: HealthReport): AsynqHealthResult<Key> =>
  ({ [key]: problems.length > 0 ? { ...rest, problems } : rest }) as AsynqHealthResult<Key>;
