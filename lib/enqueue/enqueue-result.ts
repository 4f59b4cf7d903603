import type { Owner, RepeatReply } from '../broker/uniqueness.js';
import { AcknowledgeTimeoutError, DuplicateTaskError, TaskIdConflictError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import { ExistingTaskInfo, type TaskInfo } from '../task/info.js';
import type { EnqueueSpan } from '../tracing/tracing.js';
import type { TaskMessage } from '../wire/message.js';
import { type EnqueueReply, Unacknowledged } from './producing.js';
import { infoOf, type PreparedTask } from './prepared-task.js';

/** What became of one task of `enqueueMany`. */
export type EnqueueResult =
  | { readonly ok: true; readonly info: TaskInfo; readonly error?: undefined }
  /**
   * DuplicateTaskError, TaskIdConflictError, QueueFullError, AcknowledgeTimeoutError (its task is stored), InvalidTaskError, PrerequisiteNotFoundError or
   * BrokerUnavailableError.
   */
  | { readonly ok: false; readonly error: Error; readonly info?: undefined };

/** What became of one task of `enqueueMany` with `infos: false`. */
export type EnqueueOutcome =
  | { readonly ok: true; readonly error?: undefined }
  | { readonly ok: false; readonly error: Error };

const ENQUEUED = { ok: true } as const;

/** Forgets the info: one object for all that are enqueued. */
export const outcomeOf = (result: EnqueueResult): EnqueueOutcome => (result.ok ? ENQUEUED : result);

/**
 * What follows the broker's reply about one task, whoever enqueues it: a client, an entry of a
 * scheduler or an aggregator. The status becomes an error or an info, the span ends, and a stored
 * task is reported by an event.
 *
 * @param span the span of this task alone, if it has one
 */
export function resultOf(
  task: PreparedTask,
  status: EnqueueReply,
  events: AsynqEvents | undefined,
  span?: EnqueueSpan,
): EnqueueResult {
  if (status instanceof Unacknowledged) return unacknowledged(task, status, events, span);
  const error = replyError(status, task.request.message);
  span?.end(error);
  if (error) return { ok: false, error };
  const owner = typeof status === 'object' ? (status as RepeatReply).owner : undefined;
  if (owner && (status as RepeatReply).status !== 'enqueued') return { ok: true, info: existingInfo(task, owner) };
  const info = createdInfo(task, owner);
  if (events?.wants('taskEnqueued')) events.emit('taskEnqueued', { task: info });
  return { ok: true, info };
}

/** It is stored all the same. */
function unacknowledged(
  task: PreparedTask,
  { wanted, found, reply }: Unacknowledged,
  events: AsynqEvents | undefined,
  span: EnqueueSpan | undefined,
): EnqueueResult {
  const isOther = reply?.owner !== undefined && reply.status !== 'enqueued';
  const info = isOther ? existingInfo(task, reply.owner!) : createdInfo(task, reply?.owner);
  const error = new AcknowledgeTimeoutError(info, wanted, found);
  span?.end(error);
  if (!isOther && events?.wants('taskEnqueued')) events.emit('taskEnqueued', { task: info });
  return { ok: false, error };
}

/** The error of a task that was not stored. */
export function replyError(reply: EnqueueReply, task: TaskMessage): Error | undefined {
  if (reply instanceof Error) return reply;
  if (reply === 'enqueued' || reply instanceof Unacknowledged) return undefined;
  const { status, owner }: RepeatReply = typeof reply === 'string' ? { status: reply } : reply;
  switch (status) {
    case 'duplicate':
      return new DuplicateTaskError(task, { holder: owner && { queue: task.queue, id: owner.id, state: owner.state } });
    case 'conflict':
      return new TaskIdConflictError(task);
    default:
      return undefined;
  }
}

/** @param owner the task itself when it waits */
const createdInfo = (task: PreparedTask, owner: Owner | undefined): TaskInfo =>
  owner ? infoOf({ ...task, state: owner.state!, nextProcessAt: millisecondsOf(owner) }) : infoOf(task);

/** The task that another call has created. One that was replaced has the message of this call. */
function existingInfo({ request }: PreparedTask, owner: Owner): TaskInfo {
  const { id, state = 'completed', message = { ...request.message, id } } = owner;
  return new ExistingTaskInfo(message, { state, nextProcessAt: millisecondsOf(owner) });
}

const millisecondsOf = ({ processAt }: Owner): number | undefined =>
  processAt === undefined ? undefined : processAt * 1000;
