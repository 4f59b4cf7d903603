import type {
  DamagedEntry,
  DayCount,
  ListedTask,
  PublishedServer,
  QueueNumbers,
  StoredTask,
} from '../broker/inspection.js';
import type { Clock } from '../clock.js';
import { payloadToJson } from '../task/bytes-json.js';
import { toTaskInfo, type TaskInfo } from '../task/info.js';
import type { WorkerInfo } from '../wire/message.js';

/** The figures of a queue at one moment (asynq's QueueInfo). */
export interface QueueInfo extends QueueNumbers {
  readonly queue: string;
  /** Tasks in all states. */
  readonly size: number;
  /** When the figures were read. */
  readonly timestamp: Date;
}

/** The figures of a queue on one UTC day. */
export interface DailyStats {
  readonly queue: string;
  /** `YYYY-MM-DD` */
  readonly date: string;
  readonly processed: number;
  readonly failed: number;
}

/** One page of a list. */
export interface TaskList {
  /** `pending` in the order they run, `active` in the order they were claimed, all others by time, lowest or highest first. */
  readonly tasks: TaskInfo[];
  /** Ids in the list whose message cannot be decoded. */
  readonly damaged: readonly DamagedEntry[];
  /** Pass it to get the next page; `undefined` at the end. It stays valid while tasks come and go. */
  readonly cursor: string | undefined;
}

/** A running server, ours or Go's (asynq's ServerInfo). */
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

/** A task that a server runs (asynq's WorkerInfo). */
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

  /** Like TaskInfo: the payload as JSON, text or base64, according to `taskPayloadEncoding`. */
  toJSON(): object {
    return payloadToJson(this);
  }
}

/** @param clock gives the time at which pending tasks are due: now */
export function viewTask(task: StoredTask | ListedTask, clock: Clock): TaskInfo {
  const { message, state, result, nextProcessAt, pendingSince, held, notes } = task;
  const due = nextProcessAt === undefined ? undefined : nextProcessAt * 1000;
  return toTaskInfo(message, {
    state,
    result,
    nextProcessAt: state === 'pending' ? clock.now() : due,
    pendingSince,
    held,
    notes,
    isOrphaned: 'orphaned' in task && task.orphaned,
  });
}

export function viewQueue(queue: string, numbers: QueueNumbers, now: number): QueueInfo {
  const { pending, active, scheduled, retry, archived, completed, aggregating, waiting, held } = numbers;
  const size = pending + active + scheduled + retry + archived + completed + aggregating + waiting + held;
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
    id: info.serverId,
    host,
    pid,
    concurrency,
    queues,
    strictPriority,
    status,
    startedAt: new Date(info.startTime),
    activeWorkers: workers.map((worker) => new RunningTask(worker)),
  };
}
