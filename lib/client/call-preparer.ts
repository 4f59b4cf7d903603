import type { Clock } from '../clock.js';
import { acknowledging } from '../enqueue/acknowledging.js';
import type { Preparer } from '../enqueue/preparer.js';
import type { TaskKind } from '../enqueue/task-kinds.js';
import type { PreparedTask } from '../enqueue/prepared-task.js';
import { InvalidTaskError } from '../errors.js';
import type { Acknowledge } from '../task/acknowledge.js';
import { describe, rejectUnknownKeys, requireObject } from '../validation.js';
import { type AnyTask, readItem } from './item.js';
import type { EnqueueManyOptions, EnqueueOptions } from './types.js';

/** The tasks of one call, each prepared when it is its turn. */
export interface PreparedCall {
  readonly count: number;
  /** @throws InvalidTaskError about this task */
  readonly prepare: (index: number) => PreparedTask;
  /** Of all of them; `undefined`: each has its own. */
  readonly queue: string | undefined;
  /** Whether results have infos. */
  readonly infos: boolean;
}

/** Makes requests of what the methods of a client are called with. */
export class CallPreparer {
  constructor(
    private readonly preparer: Preparer,
    private readonly acknowledge: Acknowledge | false,
    private readonly clock: Clock,
  ) {}

  /** @throws InvalidTaskError */
  one(task: AnyTask, payload: unknown, options: EnqueueOptions<never> | undefined): PreparedTask {
    return this.prepare(this.preparer.kindOf(task, options), payload, this.clock.now());
  }

  /**
   * A task that is kept after a success for at least `retention` seconds.
   *
   * @throws InvalidTaskError also for a task of a group: another task is made of it
   */
  kept(task: AnyTask, payload: unknown, options: EnqueueOptions<never>, retention: number): PreparedTask {
    const kind = this.preparer.kindOf(task, options);
    const { group } = kind.settings;
    if (group !== '') {
      throw new InvalidTaskError(
        `task "${kind.type}" has group "${group}": it becomes a part of another task, so there is no result to wait for`,
      );
    }
    const settings = { ...kind.settings, retention: Math.max(kind.settings.retention, retention) };
    return this.prepare({ ...kind, settings }, payload, this.clock.now());
  }

  /** @throws InvalidTaskError about all of them */
  many(first: unknown, second: unknown, third?: EnqueueOptions<never> & EnqueueManyOptions): PreparedCall {
    const now = this.clock.now();
    if (Array.isArray(first)) return this.items(first, second, now);
    if (!Array.isArray(second)) {
      throw new InvalidTaskError('enqueueMany takes an array of tasks, or a task and an array of payloads');
    }
    const payloads: readonly unknown[] = second;
    const { infos, ...options } = third ?? {};
    const kind = this.preparer.kindOf(first as AnyTask, third && options);
    const prepare = (index: number): PreparedTask => this.prepare(kind, payloads[index], now);
    return { count: payloads.length, prepare, queue: kind.settings.queue, infos: readInfos(infos) };
  }

  private items(items: readonly unknown[], given: unknown, now: number): PreparedCall {
    const options: EnqueueManyOptions = requireObject(given ?? {}, 'the options of enqueueMany', InvalidTaskError);
    rejectUnknownKeys(options, ['infos'], 'option of enqueueMany beside those of its tasks', InvalidTaskError);
    const prepare = (index: number): PreparedTask => {
      const item = readItem(items[index], 'a task of enqueueMany');
      return this.prepare(this.preparer.kindOf(item.task, item.options), item.payload, now);
    };
    return { count: items.length, prepare, queue: undefined, infos: readInfos(options.infos) };
  }

  private prepare(kind: TaskKind, payload: unknown, now: number): PreparedTask {
    return acknowledging(this.preparer.prepare(kind, payload, now), kind.acknowledge, this.acknowledge);
  }
}

function readInfos(infos: unknown = true): boolean {
  if (typeof infos !== 'boolean') {
    throw new InvalidTaskError(`infos of enqueueMany must be true or false, not ${describe(infos)}`);
  }
  return infos;
}
