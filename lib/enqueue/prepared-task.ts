import type { EnqueueRequest } from '../broker/broker.js';
import type { RepeatName } from '../task/repeats.js';
import { toTaskInfo, type TaskInfo } from '../task/info.js';
import type { EnqueueSpan } from '../tracing/tracing.js';
import type { TaskState } from '../wire/states.js';

/** A task that passed every check, and the state its request leads to. */
export interface PreparedTask {
  readonly request: EnqueueRequest;
  readonly state: TaskState;
  /** Milliseconds since the epoch. */
  readonly nextProcessAt: number | undefined;
  /** It has links, and goes the way of those: see `linked`. */
  readonly linked?: true;
  /** The option that says what happens when there is such a task already; then `request` is a RepeatRequest. */
  readonly repeats?: RepeatName;
  /** Its caller waits until replicas or files have it, as asked for, or as the client does; then `request` is an AcknowledgedRequest. */
  readonly acknowledge?: 'asked' | 'default';
}

/**
 * @param now milliseconds since the epoch
 * @param delayedTo when the task may run, in milliseconds since the epoch; default: as the request
 * says
 * @param repeats the option of a request that is a RepeatRequest
 */
export function prepared(
  request: EnqueueRequest,
  now: number,
  delayedTo = request.processAt === undefined ? undefined : request.processAt * 1000,
  repeats?: RepeatName,
): PreparedTask {
  if (delayedTo !== undefined) return { request, state: 'scheduled', nextProcessAt: delayedTo, repeats };
  if (request.message.groupKey !== '') return { request, state: 'aggregating', nextProcessAt: undefined, repeats };
  return { request, state: 'pending', nextProcessAt: now, repeats };
}

/** The task with the headers that carry the trace of its span, if it has one. */
export const injected = (task: PreparedTask, span: EnqueueSpan | undefined): PreparedTask =>
  span ? { ...task, request: { ...task.request, message: span.inject(task.request.message) } } : task;

/** A task as its caller sees it once it is enqueued. */
export const infoOf = (task: PreparedTask): TaskInfo => toTaskInfo(task.request.message, task);
