import type { ClusterLocation, RedisInfo } from './inspection.js';

/** What matters to asynq of a Redis server. */
export interface StoreInfo {
  /** `host:port` */
  readonly address: string;
  /** As in `7.2.4`; `undefined` when it does not say. */
  readonly version: string | undefined;
  /** What it removes when its memory is full, such as `noeviction`; `undefined` when it does not say. */
  readonly evictionPolicy: string | undefined;
  /**
   * Milliseconds by which the clock that tasks live by here is ahead of that of the server; negative when behind. As near to 0 as the
   * time allows that the answer took; `undefined` when the server does not say.
   */
  readonly ahead: number | undefined;
}

/** The place where tasks are kept. */
export interface OperationsRole {
  /** The servers that hold tasks; none where there is no Redis, or where INFO is forbidden. */
  storeInfo(): Promise<StoreInfo[]>;
  /** `undefined` where there is no Redis. */
  redisInfo(): Promise<RedisInfo | undefined>;
  /** `undefined` where there is no cluster. */
  clusterLocation(queue: string): Promise<ClusterLocation | undefined>;
}
