import type { Broker } from '../broker/broker.js';
import type { GroupSize, RedisInfo } from '../broker/inspection.js';
import type { Duration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import { Relay } from '../links/relay.js';
import type { BatchInfo } from '../task/batch.js';
import type { TaskInfo } from '../task/info.js';
import { requireNonBlank } from '../validation.js';
import type { TaskState } from '../wire/states.js';
import { type BatchListOptions, closeBatch, deleteBatch, getBatch, listBatches } from './batches.js';
import { type BulkArchiveOptions, type BulkOptions, type BulkResult, type MovableState, moveAll } from './bulk.js';
import { type CancelOptions, toCancellation } from './cancel-options.js';
import { type DeleteQueueOptions, deleteQueue } from './delete-queue.js';
import { readHistory } from './history.js';
import { requireQueue, requireQueueName, requireQueueNameOrQueue, requireUsableName } from './known-queue.js';
import { type ListOptions, type PageOptions, toListRequest, toRange } from './list-options.js';
import { type SearchOptions, type SearchResult, search, toSearch } from './search.js';
import { type EnqueueEvent, type PeriodicEntry, viewEntries, viewEvent } from './periodic-entries.js';
import type { ArchiveOptions, MoveOptions } from './move-options.js';
import { moveTask, rescheduleTask, type UpdatePayloadOptions, updatePayload } from './single-task.js';
import { readWait, type TaskWait } from './waits.js';
import {
  type DailyStats,
  type QueueInfo,
  type RunningServer,
  type TaskList,
  viewQueue,
  viewServer,
  viewTask,
} from './views.js';
import {
  cancelWorkflow,
  deleteWorkflow,
  getWorkflow,
  listWorkflows,
  retryWorkflow,
  type WorkflowDetails,
  type WorkflowInfo,
  type WorkflowListOptions,
} from './workflows.js';

/** What an inspector needs of a broker. */
export type InspectorBroker = Pick<
  Broker,
  | 'inspection'
  | 'listing'
  | 'administration'
  | 'publications'
  | 'cancellation'
  | 'operations'
  | 'clock'
  | 'maxPayloadSize'
  | 'links'
  | 'batches'
  | 'workflows'
>;

/**
 * Reads queues and tasks, and changes them (asynq's Inspector). Works in a process without a server.
 *
 * Methods with a queue reject with QueueNotFoundError if nothing was ever enqueued to it (or it was deleted), unless documented
 * otherwise. All reject with InvalidOptionError for invalid arguments, before anything is sent, and with BrokerUnavailableError.
 */
export class AsynqInspector {
  /** @param relay carries what actions cause for linked tasks; the module passes that of its connection */
  constructor(
    private readonly broker: InspectorBroker,
    private readonly relay: Pick<Relay, 'carry'> = new Relay(broker.links),
  ) {}

  /** The names of all queues that ever had a task, unsorted. */
  queues(): Promise<string[]> {
    return this.broker.inspection.queues();
  }

  /** Whether anything was enqueued to the queue since it was last deleted. */
  async hasQueue(queue: string): Promise<boolean> {
    return this.broker.inspection.hasQueue(requireQueueName(queue));
  }

  /** The groups of the queue that have waiting tasks, by name. */
  async groups(queue: string): Promise<GroupSize[]> {
    await requireQueue(this.broker.inspection, queue);
    return this.broker.inspection.groups(queue);
  }

  /** The figures of the queue. The cost does not depend on its size: it can be called every second. */
  async getQueueInfo(queue: string): Promise<QueueInfo> {
    await requireQueue(this.broker.inspection, queue);
    const numbers = await this.broker.inspection.describeQueue(queue);
    return viewQueue(queue, numbers, this.broker.clock.now());
  }

  /** The figures of today and the days before, newest first. @param days 1 to 91: older ones are not kept */
  async history(queue: string, days: number): Promise<DailyStats[]> {
    return readHistory(this.broker, queue, days);
  }

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

  /** The tasks of one state (and group), page by page. Tasks in an aggregation set are in no list. */
  async listTasks(queue: string, state: TaskState, options?: ListOptions): Promise<TaskList> {
    const request = toListRequest(state, options);
    await requireQueue(this.broker.inspection, queue);
    const { tasks, damaged, cursor } = await this.broker.listing.listTasks(queue, request);
    return { tasks: tasks.map((task) => viewTask(task, this.broker.clock)), damaged, cursor };
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
   * Archives a task, to run or delete it later. The archive keeps the newest 9,999 for 90 days.
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

  /** {@link runTask} for all tasks of a state (and group) that are there when the call begins. */
  async runAllTasks(queue: string, state: MovableState, options?: BulkOptions): Promise<BulkResult> {
    return moveAll(this.broker, this.relay, queue, 'run', state, options);
  }

  /** {@link archiveTask} for all tasks of a state (and group) that are there when the call begins. */
  async archiveAllTasks(queue: string, state: MovableState, options?: BulkArchiveOptions): Promise<BulkResult> {
    return moveAll(this.broker, this.relay, queue, 'archive', state, options);
  }

  /** {@link deleteTask} for all tasks of a state (and group) that are there when the call begins. */
  async deleteAllTasks(queue: string, state: MovableState, options?: BulkOptions): Promise<BulkResult> {
    return moveAll(this.broker, this.relay, queue, 'delete', state, options);
  }

  /**
   * Deletes a queue with its tasks, groups, locks, counters and pause, in batches; the queue is paused meanwhile. If the call is
   * stopped, the remaining tasks stay usable. A task that is enqueued meanwhile or later brings the queue back.
   *
   * @throws QueueNotFoundError; QueueNotEmptyError when it has active tasks, or others without `force`
   */
  async deleteQueue(queue: string, options: DeleteQueueOptions = {}): Promise<void> {
    await deleteQueue(this.broker, queue, options);
  }

  /** The running servers, ours and Go's, with the tasks they run. */
  async servers(): Promise<RunningServer[]> {
    return (await this.broker.publications.servers()).map(viewServer);
  }

  /**
   * Searches the tasks of one state (and group). One call reads `scan` tasks and returns those that match; the cursor continues.
   *
   * @example await inspector.searchTasks('default', 'archived', { error: 'ECONNREFUSED' })
   */
  async searchTasks(queue: string, state: TaskState, options: SearchOptions): Promise<SearchResult> {
    const wanted = toSearch(state, options);
    await requireQueue(this.broker.inspection, queue);
    return search(this.broker.listing, queue, wanted, (task) => viewTask(task, this.broker.clock));
  }

  /** The periodic tasks of all running schedulers, ours and Go's; one that several processes have is listed once. */
  async schedulerEntries(): Promise<PeriodicEntry[]> {
    return viewEntries(await this.broker.publications.schedulerEntries());
  }

  /** The last tasks that an entry has enqueued, newest first. Empty for an unknown entry. */
  async schedulerEnqueueEvents(entryId: string, options?: PageOptions): Promise<EnqueueEvent[]> {
    requireNonBlank(entryId, 'entry ID', InvalidOptionError);
    const { offset, size } = toRange(options);
    return (await this.broker.publications.enqueueEvents(entryId, offset, size)).map(viewEvent);
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
    const cancellation = toCancellation(id, options, this.broker.clock.now());
    await this.broker.cancellation.recordCancellation(cancellation); // first: a server that receives the message reads it
    await this.broker.cancellation.publishCancellation(id);
  }

  /** `INFO` of every Redis server that stores tasks, and of the cluster. `undefined` in memory. */
  redisInfo(): Promise<RedisInfo | undefined> {
    return this.broker.operations.redisInfo();
  }

  /** The slot of the queue in a Redis Cluster; `undefined` without one. */
  async clusterKeySlot(queue: string): Promise<number | undefined> {
    await requireQueueNameOrQueue(this.broker.inspection, queue);
    return (await this.broker.operations.clusterLocation(queue))?.slot;
  }

  /** The cluster nodes of the queue as `host:port`, the master first; `undefined` without a cluster. */
  async clusterNodes(queue: string): Promise<readonly string[] | undefined> {
    await requireQueueNameOrQueue(this.broker.inspection, queue);
    return (await this.broker.operations.clusterLocation(queue))?.nodes;
  }

  /** Stops all servers from taking tasks of the queue, which need not exist yet. Returns whether this call changed anything. */
  async pauseQueue(queue: string): Promise<boolean> {
    if (/[{}]/.test(requireQueueName(queue))) await requireUsableName(this.broker.inspection, queue);
    return this.broker.administration.pauseQueue(queue);
  }

  /** Ends the pause of the queue. Returns whether it was paused. */
  async unpauseQueue(queue: string): Promise<boolean> {
    requireQueueName(queue);
    return this.broker.administration.resumeQueue(queue);
  }

  /** The batches of one queue or of all, newest first, page by page. */
  listBatches(options?: BatchListOptions): Promise<BatchInfo[]> {
    return listBatches(this.broker, options);
  }

  /** How far a batch is; `undefined` when the queue has no such batch. */
  getBatch(queue: string, id: string): Promise<BatchInfo | undefined> {
    return getBatch(this.broker, queue, id);
  }

  /** Closes a batch for the process that has opened it. Nothing happens to one that is closed. @throws BatchNotFoundError */
  closeBatch(queue: string, id: string): Promise<void> {
    return closeBatch(this.broker, this.relay, queue, id);
  }

  /** Deletes what is known of a batch that has ended; its tasks stay. @throws BatchNotFoundError; BatchRunningError */
  deleteBatch(queue: string, id: string): Promise<void> {
    return deleteBatch(this.broker, this.relay, queue, id);
  }

  /** The runs of workflows, newest first; of all queues, or of one. */
  listWorkflows(options?: WorkflowListOptions): Promise<WorkflowInfo[]> {
    return listWorkflows(this.broker, options);
  }

  /** A run with its graph; `undefined` when the queue has no such run. @param id `<name of the workflow>/<id given to start>` */
  getWorkflow(queue: string, id: string): Promise<WorkflowDetails | undefined> {
    return getWorkflow(this.broker, queue, id);
  }

  /**
   * Ends a run: steps that wait do not run, their tasks are deleted, and those that are active are cancelled. Returns whether
   * this call has ended it.
   *
   * @throws WorkflowNotFoundError
   */
  cancelWorkflow(queue: string, id: string, reason?: string): Promise<boolean> {
    return cancelWorkflow(this.broker, this.relay, queue, id, reason);
  }

  /**
   * Runs the failed steps of a run again; what was cancelled because of them waits for them again. Returns how many run again.
   *
   * @throws WorkflowNotFoundError; WorkflowStateError when no step has failed, or the run was cancelled
   */
  retryWorkflow(queue: string, id: string): Promise<number> {
    return retryWorkflow(this.broker, this.relay, queue, id);
  }

  /**
   * Deletes an ended run, its results, and the archived tasks of its steps.
   *
   * @throws WorkflowNotFoundError; WorkflowStateError while it is running
   */
  deleteWorkflow(queue: string, id: string): Promise<void> {
    return deleteWorkflow(this.broker, this.relay, queue, id);
  }
}
