import type { AggregationSet, ClaimedSet, DamagedMember } from '../../broker/groups.js';
import type { EnqueueRequest, EnqueueStatus } from '../../broker/broker.js';
import { withTimeout } from '../../async.js';
import { AggregationSetLostError, DeadlineExceededError } from '../../errors.js';
import type { TaskRef } from '../../events/events.js';
import { resultOf } from '../../enqueue/enqueue-result.js';
import { injected, type PreparedTask } from '../../enqueue/prepared-task.js';
import type { TaskMessage } from '../../wire/message.js';
import type { GroupedTask, TaskAggregatorEntry } from './aggregators.js';
import type { GroupServices } from './group-services.js';

/**
 * Makes one task of one aggregation set. When the function fails, the new task is refused or the
 * set's deadline passes, nothing is written: some server puts the set back into its group.
 */
export class Aggregation {
  constructor(private readonly services: GroupServices) {}

  /** Never rejects; an event reports the outcome. */
  async run(set: ClaimedSet): Promise<void> {
    const { queue, group } = set;
    let tasks: readonly TaskMessage[] = [];
    try {
      const read = await this.services.broker.groups.readSet(set);
      tasks = read.tasks;
      const task = await this.finish(read, this.services.aggregators.find(group)!);
      if (task) this.services.events.emit('groupAggregated', { queue, group, size: task.size, task: task.made });
    } catch (error) {
      this.services.events.emit('aggregationFailed', {
        queue,
        group,
        size: tasks.length,
        types: [...new Set(tasks.map(({ type }) => type))],
        error,
        retryAt: new Date(set.deadline * 1000),
      });
    }
  }

  private async finish(
    set: AggregationSet,
    entry: TaskAggregatorEntry,
  ): Promise<{ size: number; made: TaskRef } | undefined> {
    const { broker } = this.services;
    const tasks = await this.decode(set, entry);
    if (tasks.length === 0) {
      await broker.groups.finishSet(set, undefined);
      return undefined;
    }
    const processing = this.services.tracing?.startAggregate(set.queue, set.group, set.tasks);
    const make = (): Promise<TaskRef> => this.make(set, () => entry.aggregate(set.queue, set.group, tasks));
    if (!processing) return { size: tasks.length, made: await make() };
    try {
      const made = await processing.run(make);
      processing.end('done');
      return { size: tasks.length, made };
    } catch (error) {
      processing.end('retry', error);
      throw error;
    }
  }

  /** Calls the function, and creates the task it returns in place of the set. */
  private async make(set: AggregationSet, aggregate: () => Promise<PreparedTask>): Promise<TaskRef> {
    const { events, tracing } = this.services;
    const made = await this.withinDeadline(set, aggregate);
    const span = tracing?.startEnqueue(made.request.message);
    const task = injected(made, span);
    let status: EnqueueStatus;
    try {
      status = await this.replace(set, task.request);
    } catch (error) {
      span?.end(error);
      throw error;
    }
    const { ok, error } = resultOf(task, status, events, span);
    if (!ok) throw error;
    const { id, type, queue } = task.request.message;
    return { id, type, queue };
  }

  private async replace(set: AggregationSet, request: EnqueueRequest): Promise<EnqueueStatus> {
    const { broker, relay } = this.services;
    const reply = await broker.groups.finishSet(set, request);
    if (reply.parcels) relay.carry(reply);
    const { status } = reply;
    if (status === 'lost') throw new AggregationSetLostError();
    return status === 'finished' ? 'enqueued' : status;
  }

  /** Archives what cannot be decoded, so that it does not hold up the others. */
  private async decode(set: AggregationSet, entry: TaskAggregatorEntry): Promise<GroupedTask[]> {
    const { broker, events } = this.services;
    const damaged: (DamagedMember & { readonly type?: string })[] = [...set.damaged];
    const tasks: GroupedTask[] = [];
    for (const message of set.tasks) {
      try {
        tasks.push(entry.read(message));
      } catch (error) {
        damaged.push({ id: message.id, type: message.type, error: error as Error });
      }
    }
    if (damaged.length === 0) return tasks;
    const archived = await broker.groups.archiveDamagedMembers(
      set,
      damaged.map(({ id }) => id),
    );
    if (archived < damaged.length) throw new AggregationSetLostError();
    for (const { id, type, error } of damaged)
      events.emit('taskDamaged', { task: { id, type, queue: set.queue }, error });
    return tasks;
  }

  /** After the deadline the set is no longer ours, and the task could not be stored. */
  private async withinDeadline<T>({ deadline }: ClaimedSet, work: () => Promise<T>): Promise<T> {
    const { clock } = this.services;
    const left = deadline * 1000 - clock.now();
    if (left <= 0) throw new DeadlineExceededError();
    return withTimeout(work(), left, clock, () => {
      throw new DeadlineExceededError();
    });
  }
}
