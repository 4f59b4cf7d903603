import { AsynqError } from './asynq-error.js';

/** A task, or an option of an enqueue call, is invalid. Thrown before anything is written. */
export class InvalidTaskError extends AsynqError {
  readonly code = 'ASYNQ_INVALID_TASK';
}

/** The task that was not stored. */
export interface RefusedTask {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
}

/** The task that keeps another out. */
export interface LockHolder {
  readonly queue: string;
  readonly id: string;
  /** `undefined`: it is over and was not kept, but its lock lasts. */
  readonly state: string | undefined;
}

/** Another task holds the unique lock (asynq's ErrDuplicateTask). */
export class DuplicateTaskError extends AsynqError {
  readonly code = 'ASYNQ_DUPLICATE_TASK';
  /** The task in the way, as it was right after the call; `undefined` when that is not known. */
  readonly holder: LockHolder | undefined;
  constructor({ type, queue }: RefusedTask, options: ErrorOptions & { readonly holder?: LockHolder | undefined } = {}) {
    const { holder, ...others } = options;
    const other = holder
      ? `task "${holder.id}" of type "${type}", which is ${holder.state ?? 'over'},`
      : `another of type "${type}" with the same payload`;
    super(
      `task already exists: ${other} holds the unique lock in queue "${queue}"; to get that task instead of this error give ` +
        "unique: { for, onDuplicate: 'existing' }",
      others,
    );
    this.holder = holder;
  }
}

/** A task with this id exists in the queue, in whatever state (asynq's ErrTaskIDConflict). */
export class TaskIdConflictError extends AsynqError {
  readonly code = 'ASYNQ_TASK_ID_CONFLICT';
  constructor({ id, queue }: RefusedTask, options?: ErrorOptions) {
    super(
      `task ID conflicts with another task: queue "${queue}" has one with id "${id}", in whatever state; to get that task ` +
        "instead of this error give key and once: '1d' in place of taskId",
      options,
    );
  }
}

const RUN_IS_NO_TASK =
  'If this is a run of a workflow: it is no task. Make the task a step of the run; or give the definition of the last step ' +
  'key and rememberFor, and wait for that';

/**
 * A task to wait for cannot be found: it is over and gone, or never was. Nothing was enqueued.
 */
export class PrerequisiteNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_PREREQUISITE_NOT_FOUND';
  constructor(
    /** The task that was not stored. */
    task: RefusedTask,
    /** What it was to wait for. */
    readonly prerequisite: { readonly queue: string; readonly id: string },
  ) {
    const { queue, id } = prerequisite;
    super(
      `task "${task.type}" cannot wait for task ${JSON.stringify(id)}: queue ${JSON.stringify(queue)} has no such task. ` +
        'If it has succeeded, give it a retention, or its definition key and rememberFor and wait for that, or make both ' +
        "steps of a workflow; or say how a missing one counts: missing: 'succeeded' or 'failed'" +
        (id.includes('/') ? `. ${RUN_IS_NO_TASK}` : ''),
    );
  }
}

const NOT_FOUND = {
  id: 'it has succeeded and had no retention, or was deleted, or the id or the queue is wrong',
  key: 'no task with this key waits or runs: enqueue one first, or correct the key or the queue',
} as const;

/** The queue has no such task: it is done, deleted, or never existed (asynq's ErrTaskNotFound). */
export class TaskNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_TASK_NOT_FOUND';
  /** @param by what `id` is */
  constructor(queue: string, id: string, by: keyof typeof NOT_FOUND = 'id') {
    super(`task not found: ${by}=${JSON.stringify(id)}, queue=${JSON.stringify(queue)}; ${NOT_FOUND[by]}`);
  }
}

/** The state of the task does not allow this (FAILED_PRECONDITION). Nothing was written. */
export class TaskStateError extends AsynqError {
  readonly code = 'ASYNQ_TASK_STATE';
}

/** The archive is full (`maxArchived`). What the call archived before that stays archived. */
export class ArchiveFullError extends AsynqError {
  readonly code = 'ASYNQ_ARCHIVE_FULL';
  constructor(
    queue: string,
    maxArchived: number,
    /** Tasks that the same call archived before. */
    readonly archived = 0,
  ) {
    const before = archived > 0 ? `; ${archived.toLocaleString('en-US')} were archived before that` : '';
    super(
      `the archive of queue ${JSON.stringify(queue)} holds ${maxArchived.toLocaleString('en-US')} tasks or more, and this call ` +
        `may add none then (maxArchived)${before}; run or delete archived tasks first`,
    );
  }
}

/** The queue has as many pending tasks as this client may fill it to (`maxPending`). The task was not stored. */
export class QueueFullError extends AsynqError {
  readonly code = 'ASYNQ_QUEUE_FULL';
  constructor(
    readonly queue: string,
    /** How many tasks were pending. */
    readonly pending: number,
    readonly maxPending: number,
    /** Milliseconds that the call waited for room (`waitForRoom`). */
    readonly waited = 0,
  ) {
    const after = waited > 0 ? ` still, after ${waited} ms` : '';
    const remedy = waited > 0 ? 'give it a longer waitForRoom' : 'set waitForRoom';
    super(
      `queue ${JSON.stringify(queue)} is full${after}: it has ${pending.toLocaleString('en-US')} pending ${pending === 1 ? 'task' : 'tasks'}, and this client ` +
        `adds none from ${maxPending.toLocaleString('en-US')} on (maxPending); enqueue it later, add servers, or ${remedy}`,
    );
  }
}

/** What names a task that is stored. */
interface StoredTaskRef {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
}

/** The task is stored, but within the time of `acknowledge` not where it was to be. A failover may lose it. */
export class AcknowledgeTimeoutError<Task extends StoredTaskRef = StoredTaskRef> extends AsynqError {
  readonly code = 'ASYNQ_ACKNOWLEDGE_TIMEOUT';
  constructor(
    /** The task, which is stored: its TaskInfo. */
    readonly task: Task,
    /** What was asked for; `timeout` in milliseconds. */
    readonly wanted: { readonly replicas: number; readonly disk: boolean; readonly timeout: number },
    /** How many replicas had it, and whether the file of the master had it, when the time was over. */
    readonly found: { readonly replicas: number; readonly disk: boolean },
  ) {
    const replicas = wanted.replicas > 0 ? [`${found.replicas} of ${wanted.replicas} replicas`] : [];
    const disk = wanted.disk ? [`${found.disk ? '' : 'not '}the disk of the master`] : [];
    super(
      `task "${task.type}" ${task.id} is stored in queue "${task.queue}", but after ${wanted.timeout} ms only these are known to have ` +
        `it: ${[...replicas, ...disk].join(', ')} (acknowledge). A failover may lose it. To be sure, enqueue it again under its id`,
    );
  }
}

/** Nothing was ever enqueued to the queue, or it was deleted (asynq's ErrQueueNotFound). */
export class QueueNotFoundError extends AsynqError {
  readonly code = 'ASYNQ_QUEUE_NOT_FOUND';
  constructor(
    readonly queue: string,
    remedy = 'it has had no task yet, or its name is wrong: AsynqInspector.queues() lists the names, hasQueue() asks for one',
  ) {
    super(`queue not found: queue=${JSON.stringify(queue)}; ${remedy}`);
  }
}

/**
 * The queue has tasks: delete it by force, or when no task is active (asynq's ErrQueueNotEmpty).
 */
export class QueueNotEmptyError extends AsynqError {
  readonly code = 'ASYNQ_QUEUE_NOT_EMPTY';
}
