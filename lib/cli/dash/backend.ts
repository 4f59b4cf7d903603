import { QueueNotFoundError, TaskStateError } from '../../errors.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { QueueInfo } from '../../inspector/views.js';
import type { TaskDetails } from '../../task/info.js';
import { explain, isAboutOne } from '../output/failures.js';
import { directionOf } from '../output/order.js';
import {
  type ActionRequest,
  type ActionResult,
  resultOf,
  type QueueActionRequest,
  type TaskActionRequest,
} from './actions.js';
import { queuesOf, type Row } from './model.js';
import { isLinkedTarget, type LinkedTarget, type QueryTarget, type Reply, type Replies, type Query } from './query.js';

/** How many runs and batches are listed. */
const NEWEST = 200;
/** How many days of a queue are shown. */
const HISTORY_DAYS = 7;

/** Reads for the dashboard and performs its actions, with the inspector alone. */
export class Backend {
  constructor(private readonly inspector: AsynqInspector) {}

  /** @throws BrokerUnavailableError; QueueNotFoundError */
  async read(query: Query): Promise<Reply> {
    const { target } = query;
    if (target.kind === 'queues') return { kind: 'queues', ...(await this.readQueues(target.filter, query)) };
    if (isLinkedTarget(target)) return this.readLinked(target);
    const [info, reply] = await Promise.all([
      this.inspector.getQueueInfo(target.queue),
      this.readInQueue(target, query),
    ]);
    return { ...reply, info } as Reply;
  }

  /** Performs the action as far as possible. Never rejects: failures are in the result. */
  async act(request: ActionRequest): Promise<ActionResult> {
    try {
      return await ('ids' in request ? this.actOnTasks(request) : this.setPaused(request));
    } catch (error) {
      return { text: explain(error), good: false, actedOn: [] };
    }
  }

  private async readLinked(target: LinkedTarget): Promise<Reply> {
    const { kind, queue } = target;
    const newest = { queue, size: NEWEST };
    if (kind === 'run') return { kind, run: await this.inspector.getWorkflow(target.queue, target.id) };
    if (kind === 'runs') return { kind, runs: await this.inspector.listWorkflows(newest) };
    return { kind, batches: await this.inspector.listBatches(newest) };
  }

  private async readInQueue(
    target: Exclude<QueryTarget, LinkedTarget | { kind: 'queues' }>,
    query: Query,
  ): Promise<object> {
    const { kind, queue } = target;
    switch (kind) {
      case 'queue':
        return { kind, days: await this.inspector.history(queue, HISTORY_DAYS) };
      case 'groups':
        return { kind, groups: await this.inspector.groups(queue) };
      case 'task':
        return { kind, task: await this.inspector.getTaskInfo(queue, target.id) };
      case 'tasks':
        return { kind, ...(await this.readTasks(target, query)) };
    }
  }

  /** Reads all names, but only the figures of the queues on the screen. */
  private async readQueues(filter: string, { top, height }: Query): Promise<Replies['queues']> {
    const names = (await this.inspector.queues()).sort();
    const shown = queuesOf({ names, filter }).slice(top, top + height);
    const infos = await Promise.all(shown.map((queue) => this.infoOf(queue)));
    return { names, infos: infos.filter((info) => info !== undefined) };
  }

  /** Returns `undefined` if the queue was deleted meanwhile. */
  private async infoOf(queue: string): Promise<QueueInfo | undefined> {
    try {
      return await this.inspector.getQueueInfo(queue);
    } catch (error) {
      if (error instanceof QueueNotFoundError) return undefined;
      throw error;
    }
  }

  private async readTasks(
    { queue, location, page, criteria }: Extract<QueryTarget, { kind: 'tasks' }>,
    { height }: Query,
  ): Promise<Omit<Replies['tasks'], 'info'>> {
    const { cursor, jump } = page;
    const { state, group } = location;
    if (criteria) {
      const found = await this.inspector.searchTasks(queue, state, {
        ...criteria,
        group,
        cursor,
        ...directionOf(state, page),
      });
      return { rows: toRows(found), cursor: found.cursor, scanned: found.scanned };
    }
    const where = jump ? { page: jump.page, size: jump.size } : { cursor, size: Math.min(height, 1000) };
    const list = await this.inspector.listTasks(queue, state, { ...where, group, ...directionOf(state, page) });
    return { rows: toRows(list), cursor: list.cursor, scanned: 0 };
  }

  private async setPaused({ action, queue }: QueueActionRequest): Promise<ActionResult> {
    await this.inspector.getQueueInfo(queue); // pausing a deleted queue would bring it back
    const isPause = action === 'pause';
    const changed = await (isPause ? this.inspector.pauseQueue(queue) : this.inspector.unpauseQueue(queue));
    if (!changed)
      return { text: `Queue "${queue}" was ${isPause ? 'paused' : 'resumed'} already.`, good: true, actedOn: [] };
    return { text: `Queue "${queue}" is ${isPause ? 'paused' : 'resumed'}.`, good: true, actedOn: [] };
  }

  /** Acts on one task after the other, each only in the state that was shown; stops when Redis is unavailable. */
  private async actOnTasks(request: TaskActionRequest): Promise<ActionResult> {
    const actedOn: string[] = [];
    let reason: string | undefined;
    for (const id of request.ids) {
      try {
        await this.actOnTask(request, id);
        actedOn.push(id);
      } catch (error) {
        reason ??= explain(error);
        if (!isAboutOne(error)) break;
      }
    }
    return resultOf(request, actedOn, reason);
  }

  private async actOnTask({ action, queue, location }: TaskActionRequest, id: string): Promise<void> {
    const { state, group } = location;
    if (action === 'cancel' || state === 'active') return this.cancel(queue, id);
    const from = { state, group };
    if (action === 'run') return this.inspector.runTask(queue, id, from);
    if (action === 'archive') return this.inspector.archiveTask(queue, id, from);
    return this.inspector.deleteTask(queue, id, from);
  }

  private async cancel(queue: string, id: string): Promise<void> {
    const task = await this.inspector.getTaskInfo(queue, id);
    if (task?.state !== 'active') throw new TaskStateError(`task "${id}" is not active any more`);
    await this.inspector.cancelProcessing(id);
  }
}

const toRows = (list: {
  readonly tasks: readonly TaskDetails[];
  readonly damaged: readonly { readonly id: string; readonly error: Error }[];
}): Row[] => [
  ...list.tasks.map((task) => ({ id: task.id, task, damage: '' })),
  ...list.damaged.map(({ id, error }) => ({ id, task: undefined, damage: error.message })),
];
