import type { DayCount, ListedTask, PublishedServer, QueueNumbers, StoredTask } from '../broker/inspection.js';
import type { Clock } from '../clock.js';
import { payloadToJson } from '../task/bytes-json.js';
import { toTaskInfo, type TaskInfo } from '../task/info.js';
import type { WorkerInfo } from '../wire/message.js';

/** A queue at one moment (asynq's QueueInfo). */
export interface QueueInfo extends QueueNumbers {
  readonly queue: string;
  /** Tasks in all states. */
  readonly size: number;
  /** When this was seen. */
  readonly timestamp: Date;
}

/** What a queue did on one UTC day. */
export interface DailyStats {
  readonly queue: string;
  /** `YYYY-MM-DD` */
  readonly date: string;
  readonly processed: number;
  readonly failed: number;
}

/** A running server, of whatever kind (asynq's ServerInfo). */
export interface RunningServer {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly concurrency: number;
  /** Priority by queue. */
  readonly queues: Readonly<Record<string, number>>;
  readonly strictPriority: boolean;
  /** `active`, `stopped` or `closed`. */
  readonly status: string;
  readonly startedAt: Date;
  readonly activeWorkers: readonly RunningTask[];
}

/** What a worker of a server is busy with (asynq's WorkerInfo). */
export class RunningTask {
  declare readonly taskId: string;
  declare readonly taskType: string;
  declare readonly taskPayload: Buffer;
  declare readonly queue: string;
  declare readonly startedAt: Date;
  declare readonly deadline: Date;

  constructor({ taskId, taskType, taskPayload, queue, startTime, deadline }: WorkerInfo) {
    Object.assign(this, { taskId, taskType, taskPayload, queue });
    Object.assign(this, { startedAt: new Date(startTime), deadline: new Date(deadline) });
  }

  /** As TaskInfo does: the payload as JSON, text or base64, as `taskPayloadEncoding` says. */
  toJSON(): object {
    return payloadToJson(this);
  }
}

/** @param clock tells when pending tasks are due: now */
export function viewTask(task: StoredTask | ListedTask, clock: Clock): TaskInfo {
  const { message, state, result, nextProcessAt, pendingSince } = task;
  const due = nextProcessAt === undefined ? undefined : nextProcessAt * 1000;
  return toTaskInfo(message, {
    state,
    result,
    nextProcessAt: state === 'pending' ? clock.now() : due,
    pendingSince,
    isOrphaned: 'orphaned' in task && task.orphaned,
  });
}

export function viewQueue(queue: string, numbers: QueueNumbers, now: number): QueueInfo {
  const { pending, active, scheduled, retry, archived, completed, aggregating } = numbers;
  const size = pending + active + scheduled + retry + archived + completed + aggregating;
  return { queue, size, ...numbers, timestamp: new Date(now) };
}

export const viewDay = (queue: string, { day, processed, failed }: DayCount): DailyStats => ({
  queue,
  date: day,
  processed,
  failed,
});

export function viewServer({ info, workers }: PublishedServer): RunningServer {
  const { host, pid, concurrency, queues, strictPriority, status } = info;
  return {
    ...{ id: info.serverId, host, pid, concurrency, queues, strictPriority, status },
    startedAt: new Date(info.startTime),
    activeWorkers: workers.map((worker) => new RunningTask(worker)),
  };
}
