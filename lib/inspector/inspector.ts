import type { CancellationBroker } from '../broker/cancellation.js';
import type { DamagedEntry, GroupSize, InspectorBroker, RedisInfo } from '../broker/inspection.js';
import type { Clock } from '../clock.js';
import type { Duration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import type { TaskInfo } from '../task/info.js';
import { requireInteger, requireNonBlank } from '../validation.js';
import { utcDay } from '../wire/keys.js';
import type { TaskState } from '../wire/states.js';
import { type BulkArchiveOptions, type BulkOptions, type BulkResult, type MovableState, moveAll } from './bulk.js';
import { type CancelOptions, toCancellation } from './cancel-options.js';
import { type DeleteQueueOptions, deleteQueue } from './delete-queue.js';
import { requireQueue, requireQueueName, requireQueueNameOrQueue, requireUsableName } from './known-queue.js';
import { type ListOptions, type PageOptions, toListRequest, toRange } from './list-options.js';
import { type SearchOptions, type SearchResult, search, toSearch } from './search.js';
import { type EnqueueEvent, type PeriodicEntry, viewEntries, viewEvent } from './periodic-entries.js';
import type { ArchiveOptions, MoveOptions } from './move-options.js';
import { moveTask, rescheduleTask, type UpdatePayloadOptions, updatePayload } from './single-task.js';
import {
  type DailyStats,
  type QueueInfo,
  type RunningServer,
  viewDay,
  viewQueue,
  viewServer,
  viewTask,
} from './views.js';

const DAY_MS = 86_400_000;
/** Daily counters live 90 days, which can touch 91 dates. */
const MAX_HISTORY_DAYS = 91;

/** One page of a list. */
export interface TaskList {
  /** `pending` in the order they are to run, `active` in the order they were taken, all others lowest time first, or highest. */
  readonly tasks: TaskInfo[];
  /** Entries of the list without a readable message, by id. */
  readonly damaged: readonly DamagedEntry[];
  /** Pass it to get the next page; `undefined` at the end. It stays right while tasks come and go. */
  readonly cursor: string | undefined;
}

/**
 * Looks at queues and tasks, and steers them (asynq's Inspector). Works in a process without a server.
 *
 * Methods that name a queue reject with QueueNotFoundError when nothing was ever enqueued to it (or it was deleted), unless they say
 * otherwise; all reject with InvalidOptionError for what cannot be meant, before anything is sent, and with BrokerUnavailableError.
 */
export class AsynqInspector {
  constructor(
    private readonly broker: InspectorBroker &
      Pick<CancellationBroker, 'recordCancellation' | 'publishCancellation'> & {
        readonly clock: Clock;
        readonly maxPayloadSize: number;
      },
  ) {}

  /** Names of all queues that have ever had a task, unsorted. */
  queues(): Promise<string[]> {
    return this.broker.queues();
  }

  /** Whether anything was ever enqueued to the queue since it was last deleted. */
  async hasQueue(queue: string): Promise<boolean> {
    return this.broker.hasQueue(requireQueueName(queue));
  }

  /** The groups of the queue that have waiting tasks, by name. */
  async groups(queue: string): Promise<GroupSize[]> {
    await requireQueue(this.broker, queue);
    return this.broker.groups(queue);
  }

  /** How the queue stands. Costs the same whatever its size: it can be asked every second. */
  async getQueueInfo(queue: string): Promise<QueueInfo> {
    await requireQueue(this.broker, queue);
    const numbers = await this.broker.describeQueue(queue);
    return viewQueue(queue, numbers, this.broker.clock.now());
  }

  /** What the queue did today and on the days before, newest first. @param days 1 to 91: what is older is not kept */
  async history(queue: string, days: number): Promise<DailyStats[]> {
    requireInteger(days, 'days', InvalidOptionError, { least: 1, most: MAX_HISTORY_DAYS });
    await requireQueue(this.broker, queue);
    const now = this.broker.clock.now();
    const names = Array.from({ length: days }, (_, back) => utcDay(now - back * DAY_MS));
    return (await this.broker.countsOfDays(queue, names)).map((day) => viewDay(queue, day));
  }

  /**
   * A task as it stands now; `undefined` when the queue has no such task, for example because it succeeded without a retention,
   * or when there is no such queue.
   *
   * @throws InvalidOptionError for a blank queue or id; UndecodableMessageError; BrokerUnavailableError
   */
  async getTaskInfo(queue: string, id: string): Promise<TaskInfo | undefined> {
    requireQueueName(queue);
    requireNonBlank(id, 'task ID', InvalidOptionError);
    const stored = await this.broker.getTask(queue, id);
    return stored && viewTask(stored, this.broker.clock);
  }

  /** The tasks of one state (and group), page by page. Tasks claimed for an aggregation are in no list. */
  async listTasks(queue: string, state: TaskState, options?: ListOptions): Promise<TaskList> {
    const request = toListRequest(state, options);
    await requireQueue(this.broker, queue);
    const { tasks, damaged, cursor } = await this.broker.listTasks(queue, request);
    return { tasks: tasks.map((task) => viewTask(task, this.broker.clock)), damaged, cursor };
  }

  /**
   * Makes a task pending at once, last in line, whatever it waited for; also one that is archived or completed. Its failures stay
   * counted: an archived task that fails again is archived again.
   *
   * @throws TaskNotFoundError; TaskStateError when it is active or pending, not where `options` say, or its group is being aggregated
   */
  async runTask(queue: string, id: string, options?: MoveOptions): Promise<void> {
    await moveTask(this.broker, queue, 'run', id, options);
  }

  /**
   * Archives a task, to be run or deleted by hand. The archive keeps the newest 9,999 for 90 days, as ever.
   *
   * @throws TaskNotFoundError; TaskStateError when it is active or archived, not where `options` say, or its group is being aggregated;
   *   ArchiveFullError with `maxArchived`
   */
  async archiveTask(queue: string, id: string, options?: ArchiveOptions): Promise<void> {
    await moveTask(this.broker, queue, 'archive', id, options);
  }

  /**
   * Deletes a task in any state but active, with the unique lock it holds; also a damaged entry of a list.
   *
   * @throws TaskNotFoundError; TaskStateError when it is active, not where `options` say, or its group is being aggregated
   */
  async deleteTask(queue: string, id: string, options?: MoveOptions): Promise<void> {
    await moveTask(this.broker, queue, 'delete', id, options);
  }

  /**
   * Has a task run at another time, under the same id: a Date, or so long from now. It becomes scheduled, wherever it waited; one that
   * is to be retried stays so. One with a group leaves it and joins again then. The lock of a unique task lasts as much longer as
   * it is put off. A time that has passed is due at once.
   *
   * @throws TaskNotFoundError; TaskStateError when it is active, not where `options` say, or its group is being aggregated
   * @example await inspector.rescheduleTask('default', 'order-17', '2h')
   */
  async rescheduleTask(queue: string, id: string, when: Date | Duration, options?: MoveOptions): Promise<void> {
    await rescheduleTask(this.broker, queue, id, when, options);
  }

  /**
   * Gives a task that is scheduled, pending, to be retried or archived another payload (asynq: a scheduled one only): bytes as they are,
   * everything else as JSON; `undefined` is none. The lock of a unique task stays that of its old payload. With `replaces`, only if
   * that is its payload still: so that nobody overwrites what he has not seen.
   *
   * @throws TaskNotFoundError; TaskStateError in any other state, when it has another payload than `replaces`, or changes all the time;
   * InvalidTaskError
   */
  async updateTaskPayload(queue: string, id: string, payload: unknown, options?: UpdatePayloadOptions): Promise<void> {
    await updatePayload(this.broker, queue, id, payload, options);
  }

  /** {@link runTask} for all tasks of a state (and group) that are there when the call begins. */
  async runAllTasks(queue: string, state: MovableState, options?: BulkOptions): Promise<BulkResult> {
    return moveAll(this.broker, queue, 'run', state, options);
  }

  /** {@link archiveTask} for all tasks of a state (and group) that are there when the call begins. */
  async archiveAllTasks(queue: string, state: MovableState, options?: BulkArchiveOptions): Promise<BulkResult> {
    return moveAll(this.broker, queue, 'archive', state, options);
  }

  /** {@link deleteTask} for all tasks of a state (and group) that are there when the call begins. */
  async deleteAllTasks(queue: string, state: MovableState, options?: BulkOptions): Promise<BulkResult> {
    return moveAll(this.broker, queue, 'delete', state, options);
  }

  /**
   * Deletes a queue with all that belongs to it: tasks, groups, locks, counters, the pause. Some tasks at a time; the queue is
   * paused meanwhile. Stopped half-way, what is left can be worked on. Who enqueues to it meanwhile, or later, brings it back.
   *
   * @throws QueueNotFoundError; QueueNotEmptyError when it has tasks in any state and `force` is not given, or active ones
   */
  async deleteQueue(queue: string, options: DeleteQueueOptions = {}): Promise<void> {
    await deleteQueue(this.broker, queue, options);
  }

  /** The servers that run, ours and Go's, and what they are busy with. */
  async servers(): Promise<RunningServer[]> {
    return (await this.broker.servers()).map(viewServer);
  }

  /**
   * Looks for tasks in one state (and group). One call looks at `scan` tasks and finds all of them that fit; the cursor goes on.
   *
   * @example await inspector.searchTasks('default', 'archived', { error: 'ECONNREFUSED' })
   */
  async searchTasks(queue: string, state: TaskState, options: SearchOptions): Promise<SearchResult> {
    const wanted = toSearch(state, options);
    await requireQueue(this.broker, queue);
    return search(this.broker, queue, wanted, (task) => viewTask(task, this.broker.clock));
  }

  /** The periodic tasks of all schedulers that run, ours and Go's; one that several processes have is listed once. */
  async schedulerEntries(): Promise<PeriodicEntry[]> {
    return viewEntries(await this.broker.schedulerEntries());
  }

  /** What became of a periodic task: its last enqueues, newest first. Empty for an entry nobody knows. */
  async schedulerEnqueueEvents(entryId: string, options?: PageOptions): Promise<EnqueueEvent[]> {
    requireNonBlank(entryId, 'entry ID', InvalidOptionError);
    const { offset, size } = toRange(options);
    return (await this.broker.enqueueEvents(entryId, offset, size)).map(viewEvent);
  }

  /**
   * Asks whichever server runs the task to cancel it: its signal fires, with the reason, and the attempt ends at once with the
   * outcome. A server that was out of reach meanwhile comes to know of it within seconds, for ten minutes. Not acknowledged,
   * and without effect on attempts that begin later. A Go server does what asynq does: it retries, and knows no reason. An id
   * that runs in several queues is cancelled in all of them, as in asynq.
   *
   * @example await inspector.cancelProcessing('order-17', { reason: 'the order was withdrawn', outcome: 'archive' })
   */
  async cancelProcessing(id: string, options: CancelOptions = {}): Promise<void> {
    const cancellation = toCancellation(id, options, this.broker.clock.now());
    await this.broker.recordCancellation(cancellation); // first: whoever hears the message looks it up
    await this.broker.publishCancellation(id);
  }

  /** What Redis says of itself: `INFO` of every server that holds tasks, and of the cluster. `undefined` in memory. */
  redisInfo(): Promise<RedisInfo | undefined> {
    return this.broker.redisInfo();
  }

  /** The slot of a Redis Cluster that holds the queue; `undefined` where there is no cluster. */
  async clusterKeySlot(queue: string): Promise<number | undefined> {
    await requireQueueNameOrQueue(this.broker, queue);
    return (await this.broker.clusterPlace(queue))?.slot;
  }

  /** The nodes of the cluster that hold the queue, as `host:port`, the master first; `undefined` where there is no cluster. */
  async clusterNodes(queue: string): Promise<readonly string[] | undefined> {
    await requireQueueNameOrQueue(this.broker, queue);
    return (await this.broker.clusterPlace(queue))?.nodes;
  }

  /** No server takes tasks of the queue, which need not exist yet, until `unpauseQueue`. Answers whether this call changed anything. */
  async pauseQueue(queue: string): Promise<boolean> {
    if (/[{}]/.test(requireQueueName(queue))) await requireUsableName(this.broker, queue);
    return this.broker.pauseQueue(queue);
  }

  /** Answers whether the queue was paused. */
  async unpauseQueue(queue: string): Promise<boolean> {
    requireQueueName(queue);
    return this.broker.resumeQueue(queue);
  }
}
