/**
 * The task message in the hash field `msg` (asynq.TaskMessage, wire-protocol section 2.1). Times
 * and durations are whole seconds; 0 means "none". The payload is bytes, which nothing here
 * interprets.
 */
export interface TaskMessage {
  readonly type: string;
  /** Empty if there is no payload: nil and empty are equal on the wire. */
  readonly payload: Buffer;
  readonly id: string;
  readonly queue: string;
  readonly maxRetry: number;
  readonly retried: number;
  /** Text of the last failure. */
  readonly errorMsg: string;
  readonly timeout: number;
  readonly deadline: number;
  /** Full name of the lock key, empty if the task is not unique. */
  readonly uniqueKey: string;
  readonly lastFailedAt: number;
  readonly retention: number;
  readonly completedAt: number;
  readonly groupKey: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
  /**
   * Raw protobuf fields that a newer asynq wrote, and values that a JavaScript number cannot
   * represent. They are kept, so that rewriting the message (retry, archive, complete) loses
   * nothing.
   */
  readonly unknownFields?: Buffer;
}

/** The status of a server. `new` exists in Go but is never published. */
export type ServerStatus = 'active' | 'stopped' | 'closed';

/** `asynq.ServerInfo` (section 2.2). `startTime` in milliseconds. */
export interface ServerInfo {
  readonly host: string;
  readonly pid: number;
  readonly serverId: string;
  readonly concurrency: number;
  readonly queues: Readonly<Record<string, number>>;
  readonly strictPriority: boolean;
  /**
   * As servers publish it: see {@link ServerStatus}; values of other versions are kept as they are.
   */
  readonly status: ServerStatus | (string & {});
  readonly startTime: number;
  readonly activeWorkerCount: number;
}

/** `asynq.WorkerInfo`: one running task. Times in milliseconds. */
export interface WorkerInfo {
  readonly host: string;
  readonly pid: number;
  readonly serverId: string;
  readonly taskId: string;
  readonly taskType: string;
  readonly taskPayload: Buffer;
  readonly queue: string;
  readonly startTime: number;
  readonly deadline: number;
}

/**
 * `asynq.SchedulerEntry`. Times in milliseconds, `undefined` = never (Go's zero time on the wire).
 */
export interface SchedulerEntry {
  readonly id: string;
  readonly spec: string;
  readonly taskType: string;
  readonly taskPayload: Buffer;
  readonly enqueueOptions: readonly string[];
  readonly nextEnqueueTime: number | undefined;
  readonly prevEnqueueTime: number | undefined;
}

/** `asynq.SchedulerEnqueueEvent`. */
export interface SchedulerEnqueueEvent {
  readonly taskId: string;
  readonly enqueueTime: number;
}
