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

/** `INFO` of one Redis server. */
export interface RedisNode {
  /** `host:port` */
  readonly address: string;
  /** The text of `INFO`: lines of `name:value`. */
  readonly info: string;
}

/** What Redis reports about itself. */
export interface RedisInfo {
  /** Where it is, without credentials. */
  readonly address: string;
  /** Every server with tasks: the only one, or all masters of the cluster that replied. */
  readonly nodes: readonly RedisNode[];
  /** The texts of `CLUSTER INFO` and `CLUSTER NODES`; `undefined` where there is no cluster. */
  readonly cluster: { readonly info: string; readonly nodes: string } | undefined;
}

/** Of the server. Valkey has the version of Redis that it is compatible with, too. @param info what INFO has said, by name */
export const serverVersion = (info: Readonly<Record<string, string>>): string | undefined =>
  info['valkey_version'] ?? info['redis_version'];

/** Where a cluster stores a queue. */
export interface ClusterLocation {
  readonly slot: number;
  /** `host:port`, the master first. */
  readonly nodes: readonly string[];
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
