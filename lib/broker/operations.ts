import type { ClusterLocation, RedisInfo } from './inspection.js';

/** The facts about a Redis server that matter to asynq. */
export interface StoreInfo {
  /** `host:port` */
  readonly address: string;
  /** As in `7.2.4`; `undefined` when unknown. */
  readonly version: string | undefined;
  /** What it evicts when its memory is full, such as `noeviction`; `undefined` when unknown. */
  readonly evictionPolicy: string | undefined;
  /**
   * Milliseconds by which the clock of this process is ahead of the server's; negative when behind.
   * The value nearest to 0 that the time of the reply allows; `undefined` when unknown.
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
