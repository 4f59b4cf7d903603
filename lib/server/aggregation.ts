import type { AggregationBroker, AggregationSet, ClaimedSet, FinishStatus } from '../broker/aggregation.js';
import type { Clock } from '../clock.js';
import { AggregationSetLostError, DeadlineExceededError, DuplicateTaskError, TaskIdConflictError } from '../errors.js';
import type { AsynqEvents, TaskRef } from '../events/events.js';
import type { Aggregators, GroupedTask, TaskAggregatorEntry } from './aggregators.js';

export interface AggregationOptions {
  readonly broker: AggregationBroker;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly aggregators: Aggregators;
}

/**
 * Makes one task of one claimed set. When the function fails, the new task is refused or the set's time passes, nothing is
 * written: the set goes back to its group at its deadline, by whoever reclaims.
 */
export class Aggregation {
  constructor(private readonly options: AggregationOptions) {}

  /** Never rejects: it says what happened by an event. */
  async run(set: ClaimedSet): Promise<void> {
    const { queue, group } = set;
    let size = 0;
    try {
      const read = await this.options.broker.readSet(set);
      size = read.tasks.length;
      const task = await this.finish(read, this.options.aggregators.find(group)!);
      if (task) this.options.events.emit('groupAggregated', { queue, group, size: task.size, task: task.made });
    } catch (error) {
      this.options.events.emit('aggregationFailed', {
        queue,
        group,
        size,
        error,
        retryAt: new Date(set.deadline * 1000),
      });
    }
  }

  private async finish(
    set: AggregationSet,
    entry: TaskAggregatorEntry,
  ): Promise<{ size: number; made: TaskRef } | undefined> {
    const { broker } = this.options;
    const tasks = await this.decode(set, entry);
    if (tasks.length === 0) {
      await broker.finishSet(set, undefined);
      return undefined;
    }
    const request = await this.withinDeadline(set, entry.aggregate(set.queue, set.group, tasks));
    const status = await broker.finishSet(set, request);
    if (status !== 'finished') throw failureOf(status);
    const { id, type, queue } = request.message;
    return { size: tasks.length, made: { id, type, queue } };
  }

  /** What cannot be read is archived, so that it holds up nothing. */
  private async decode(set: AggregationSet, entry: TaskAggregatorEntry): Promise<GroupedTask[]> {
    const { broker, events } = this.options;
    const damaged = [...set.damaged];
    const tasks: GroupedTask[] = [];
    for (const message of set.tasks) {
      try {
        tasks.push(entry.read(message));
      } catch (error) {
        damaged.push({ id: message.id, error: error as Error });
      }
    }
    if (damaged.length === 0) return tasks;
    const archived = await broker.setAside(
      set,
      damaged.map(({ id }) => id),
    );
    if (archived < damaged.length) throw new AggregationSetLostError();
    for (const { id, error } of damaged) events.emit('taskDamaged', { task: { id, queue: set.queue }, error });
    return tasks;
  }

  /** After the deadline the result could not be stored: nobody waits for it then. */
  private withinDeadline<T>({ deadline }: ClaimedSet, work: Promise<T>): Promise<T> {
    const { clock } = this.options;
    return new Promise((resolve, reject) => {
      const timer = clock.after(deadline * 1000 - clock.now(), () => reject(new DeadlineExceededError()));
      work.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}

function failureOf(status: Exclude<FinishStatus, 'finished'>): Error {
  if (status === 'duplicate') return new DuplicateTaskError();
  return status === 'conflict' ? new TaskIdConflictError() : new AggregationSetLostError();
}
