import type { Duration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import type { AttemptList } from '../task/attempts.js';
import type { TaskInfo } from '../task/info.js';
import { requireNonBlank } from '../validation.js';
import type { TaskState } from '../wire/states.js';
import {
  type BulkArchiveOptions,
  type BulkOptions,
  type BulkResult,
  type CancelAllOptions,
  cancelAll,
  type CountOptions,
  countTasks,
  type MovableState,
  moveAll,
} from './bulk.js';
import { listAttempts } from './attempts.js';
import { cancel } from './cancel.js';
import type { CancelOptions } from './cancel-options.js';
import { explain } from './explain/explain.js';
import type { TaskExplanation } from './explain/reasons.js';
import type { HandlerStepList } from './handler-step.js';
import { requireQueue, requireQueueName } from './known-queue.js';
import { type ListOptions, toListRequest } from './list-options.js';
import { type LockList, type LockListOptions, listLocks, type LockToRelease, releaseLock } from './locks.js';
import type { ArchiveOptions, MoveOptions } from './move-options.js';
import { QueueInspector } from './queue-inspector.js';
import { type SearchOptions, type SearchResult, search, toSearch } from './search.js';
import { moveTask, rescheduleTask, type UpdatePayloadOptions, updatePayload } from './single-task.js';
import { type HandlerStepListOptions, listSteps } from './steps.js';
import { readWait, type TaskWait } from './waits.js';
import { type TaskList, viewTask } from './views.js';

/** The part of AsynqInspector for tasks. */
export abstract class TaskInspector extends QueueInspector {
  /**
   * A task as it is now; `undefined` if the queue has no such task, for example because it succeeded without a retention, or if
   * there is no such queue.
   *
   * @throws InvalidOptionError for a blank queue or id; UndecodableMessageError; BrokerUnavailableError
   */
  async getTaskInfo(queue: string, id: string): Promise<TaskInfo | undefined> {
    requireQueueName(queue);
    requireNonBlank(id, 'task ID', InvalidOptionError);
    const stored = await this.broker.inspection.getTask(queue, id);
    return stored && viewTask(stored, this.broker.clock);
  }

  /**
   * What a task waits for and why it still does, or has waited for. `undefined` if it has never waited, or does not exist.
   *
   * @throws InvalidOptionError for a blank queue or id; BrokerUnavailableError
   * @example const { prerequisites, until } = (await inspector.waits('default', 'ship-17'))!;
   */
  waits(queue: string, id: string): Promise<TaskWait | undefined> {
    return readWait(this.broker, queue, id);
  }

  /**
   * The steps of the handler of a task, as they are stored with it, and the signals it has got. `undefined` if it has none of both, or
   * does not exist.
   *
   * @throws InvalidOptionError for a blank queue or id; BrokerUnavailableError
   * @example const { steps } = (await inspector.steps('default', 'order-17'))!;
   */
  steps(queue: string, id: string, options?: HandlerStepListOptions): Promise<HandlerStepList | undefined> {
    return listSteps(this.broker, queue, id, options);
  }

  /**
   * The attempts of a task that have ended: when and where each ran, for how long, and how it failed. Kept are those of servers with
   * `attemptHistory`, the last ten by default. A task that succeeds at once has none, and one that is deleted leaves none. `undefined` if it
   * does not exist.
   *
   * @throws InvalidOptionError for a blank queue or id; BrokerUnavailableError
   * @example const { attempts, total } = (await inspector.attempts('default', 'order-17'))!;
   */
  attempts(queue: string, id: string): Promise<AttemptList | undefined> {
    return listAttempts(this.broker, queue, id);
  }

  /**
   * Why a task does not run, or where it does: what holds it now, then what would hold it after that. Also for a task that does not
   * exist. The cost does not depend on the size of the queue.
   *
   * @throws InvalidOptionError for a blank queue or id; BrokerUnavailableError
   * @example console.log((await inspector.explain(task)).summary); // Its queue is paused: no server takes tasks of it until …
   */
  explain({ queue, id }: Pick<TaskInfo, 'queue' | 'id'>): Promise<TaskExplanation> {
    return explain(this.broker, queue, id);
  }

  /**
   * The locks of unique tasks, also those that Go has taken: who holds each, and until when. One page goes over some ten thousand keys of Redis, so
   * it may be empty though more follow; a lock may come twice.
   *
   * @throws InvalidOptionError; QueueNotFoundError; BrokerUnavailableError
   * @example const { locks, cursor } = await inspector.locks('default');
   */
  locks(queue: string, options?: LockListOptions): Promise<LockList> {
    return listLocks(this.broker, queue, options);
  }

  /**
   * Frees a lock by hand, so that the next equal task is a new one. Its holder stays as it is. Returns `false`, and frees nothing, when the
   * lock is free, or another task holds it by now.
   *
   * @param lock one of {@link locks}, or its name and the id of its holder
   * @throws InvalidOptionError; QueueNotFoundError; BrokerUnavailableError
   * @example for (const lock of locks) if (lock.holder.state === undefined) await inspector.releaseLock('default', lock);
   */
  releaseLock(queue: string, lock: LockToRelease): Promise<boolean> {
    return releaseLock(this.broker, queue, lock);
  }

  /** The tasks of one state (and group), page by page. Tasks in an aggregation set are in no list. */
  async listTasks(queue: string, state: TaskState, options?: ListOptions): Promise<TaskList> {
    const request = toListRequest(state, options);
    await requireQueue(this.broker.inspection, queue);
    const { tasks, damaged, cursor } = await this.broker.listing.listTasks(queue, request);
    return { tasks: tasks.map((task) => viewTask(task, this.broker.clock)), damaged, cursor };
  }

  /**
   * Searches the tasks of one state (and group). One call reads `scan` tasks and returns those that match; the cursor continues.
   *
   * @example await inspector.searchTasks('default', 'archived', { error: 'ECONNREFUSED' })
   */
  async searchTasks(queue: string, state: TaskState, options: SearchOptions): Promise<SearchResult> {
    const wanted = await toSearch(this.broker, state, options);
    await requireQueue(this.broker.inspection, queue);
    return search(this.broker.listing, queue, wanted, (task) => viewTask(task, this.broker.clock));
  }

  /**
   * Makes a delayed, archived, completed or waiting task pending at once, as the last of its queue; it waits for no other task
   * then. Its failures stay counted: an archived task that fails again is archived again.
   *
   * @throws TaskNotFoundError; TaskStateError when it is active or pending, not where `options` say, or its group is being aggregated
   */
  async runTask(queue: string, id: string, options?: MoveOptions): Promise<void> {
    await moveTask(this.broker, this.relay, queue, 'run', id, options);
  }

  /**
   * Archives a task, to run or delete it later. The archive keeps the newest 9,999 for 90 days, unless the queue has other limits.
   *
   * @throws TaskNotFoundError; TaskStateError when it is active or archived, not where `options` say, or its group is being aggregated;
   *   ArchiveFullError with `maxArchived`
   */
  async archiveTask(queue: string, id: string, options?: ArchiveOptions): Promise<void> {
    await moveTask(this.broker, this.relay, queue, 'archive', id, options);
  }

  /**
   * Deletes a task in any state but active, with the unique lock it holds; also a damaged task.
   *
   * @throws TaskNotFoundError; TaskStateError when it is active, not where `options` say, or its group is being aggregated
   */
  async deleteTask(queue: string, id: string, options?: MoveOptions): Promise<void> {
    await moveTask(this.broker, this.relay, queue, 'delete', id, options);
  }

  /**
   * Changes the time at which a task runs: to a Date, or to a Duration from now. The task keeps its id and becomes scheduled; in
   * `retry` it stays. A task with a group leaves it and joins it again at that time. A unique lock is extended by the delay.
   * A time in the past is due at once.
   *
   * @throws TaskNotFoundError; TaskStateError when it is active, not where `options` say, or its group is being aggregated
   * @example await inspector.rescheduleTask('default', 'order-17', '2h')
   */
  async rescheduleTask(queue: string, id: string, when: Date | Duration, options?: MoveOptions): Promise<void> {
    await rescheduleTask(this.broker, queue, id, when, options);
  }

  /**
   * Replaces the payload of a scheduled, pending, retry, archived or waiting task (asynq: only of a scheduled one): bytes as they
   * are, everything else as JSON, `undefined` as no payload. A unique lock stays that of the old payload, and so do the keys of
   * links. With `replaces`, only if that still is the payload, so that nobody overwrites a change they have not seen.
   *
   * @throws TaskNotFoundError; TaskStateError in any other state, when its payload is not `replaces`, or it keeps changing;
   * InvalidTaskError
   */
  async updateTaskPayload(queue: string, id: string, payload: unknown, options?: UpdatePayloadOptions): Promise<void> {
    await updatePayload(this.broker, queue, id, payload, options);
  }

  /**
   * How many tasks of a state (and group) match. It reads all of them, some hundred at a time.
   *
   * @example await inspector.countTasks('default', 'archived', { type: 'email:', error: 'ECONNREFUSED', olderThan: '2h' })
   */
  async countTasks(queue: string, state: TaskState, options?: CountOptions): Promise<number> {
    return countTasks(this.broker, queue, state, options);
  }

  /** {@link runTask} for all tasks of a state (and group) that are there when the call begins, or those of them that match. */
  async runAllTasks(queue: string, state: MovableState, options?: BulkOptions): Promise<BulkResult> {
    return moveAll(this.broker, this.relay, queue, 'run', state, options);
  }

  /** {@link archiveTask} for all tasks of a state (and group) that are there when the call begins, or those of them that match. */
  async archiveAllTasks(queue: string, state: MovableState, options?: BulkArchiveOptions): Promise<BulkResult> {
    return moveAll(this.broker, this.relay, queue, 'archive', state, options);
  }

  /** {@link deleteTask} for all tasks of a state (and group) that are there when the call begins, or those of them that match. */
  async deleteAllTasks(queue: string, state: MovableState, options?: BulkOptions): Promise<BulkResult> {
    return moveAll(this.broker, this.relay, queue, 'delete', state, options);
  }

  /**
   * Asks the server that runs the task to cancel it: the task's signal is aborted with the reason, and the attempt ends at once with
   * the outcome. A server that missed the message finds the cancellation within seconds, for ten minutes. There is no reply, and
   * no effect on attempts that begin later. A Go server ignores reason and outcome: it retries the task. An id that runs in
   * several queues is cancelled in all of them, as in asynq.
   *
   * @example await inspector.cancelProcessing('order-17', { reason: 'the order was withdrawn', outcome: 'archive' })
   */
  async cancelProcessing(id: string, options: CancelOptions = {}): Promise<void> {
    await cancel(this.broker, id, options);
  }

  /**
   * {@link cancelProcessing} for all active tasks of a queue, or those that match. Returns for how many it has asked.
   *
   * @example await inspector.cancelAllTasks('default', { type: 'import:', olderThan: '1h', outcome: 'archive' })
   */
  async cancelAllTasks(queue: string, options?: CancelAllOptions): Promise<number> {
    return cancelAll(this.broker, queue, options);
  }
}
