import type { RunningServer, RunningTask } from '../../../inspector/views.js';
import type { TaskInfo } from '../../../task/info.js';
import type { Dashboard } from '../../dashboard.js';
import { MAX_LISTED_BYTES } from '../../payload/presenter.js';
import { cut } from '../../payload/text.js';
import { amount, count, flag, mapOf, orNull, type Schema, shape, text, time } from '../schema.js';
import { toSubject } from './subject.js';
import { PROGRESS_SCHEMA, showProgress } from './task-notes.js';
import { goTime, timeOrNull } from './times.js';

/** Fields that exist in one state only. */
const BY_STATE: Readonly<Record<string, Schema>> = {
  start_time: text('active: RFC 3339, or `-` while it is not known'),
  deadline: text('active: the same'),
  progress: PROGRESS_SCHEMA,
  is_orphaned: flag('active: no server holds its lease'),
  pending_since: orNull(time('pending: when it last became pending; null if that is not known')),
  next_process_at: time('scheduled, retry; waiting: the end of its wait; held: when it is tried again at the latest'),
  held_by: text('held: the scope of the limit, or `~newer:` and its type; empty if that is not known'),
  held_since: orNull(time('held')),
  completed_at: time('completed'),
  result: text('completed'),
  ttl_seconds: count('completed: how long it is kept'),
};

export const listedTaskSchemas = {
  ListedTask: shape(
    {
      id: text(),
      type: text(),
      queue: text(),
      state: text(),
      enqueued_at: orNull(time('null if it is not known')),
      payload: text('its text, cut, or `non-printable bytes`; only the first 16,384 bytes are read'),
      payload_size: count('bytes'),
      payload_cut: flag('whether the text was cut'),
      redacted: flag('whether a part of the task is hidden or may be'),
      max_retry: count(),
      retried: count(),
      error_message: text('its first 2,000 characters'),
      last_failed_at: orNull(time('archived: never null, but the year 1')),
      headers: mapOf(text()),
      group: text(),
      timeout_seconds: amount(),
      retention_seconds: amount(),
      ...BY_STATE,
    },
    Object.keys(BY_STATE),
  ),
  DamagedEntry: shape({ id: text(), error: text() }),
};

/** Characters of an error in a list; some errors are whole pages of HTML. */
const MAX_LISTED_ERROR_LENGTH = 2_000;

/** Workers by the queue and id of their task. */
export type Workers = ReadonlyMap<string, RunningTask>;

const workerKey = (queue: string, id: string): string => JSON.stringify([queue, id]);

export const workersOf = (servers: readonly RunningServer[]): Workers =>
  new Map(
    servers
      .flatMap(({ activeWorkers }) => activeWorkers)
      .map((worker) => [workerKey(worker.queue, worker.taskId), worker]),
  );

export function showListed(dashboard: Dashboard, task: TaskInfo, workers: Workers) {
  const { maxPayloadLength, maxResultLength } = dashboard.settings;
  const presented = dashboard.presenter.presentRow(toSubject(task));
  const payload = cut(presented.payload.text, maxPayloadLength);
  return {
    id: task.id,
    type: task.type,
    queue: task.queue,
    state: task.state,
    enqueued_at: timeOrNull(task.enqueuedAt),
    payload: payload.text,
    payload_size: task.payload.length,
    payload_cut: payload.cut || (!presented.payload.isHidden && task.payload.length > MAX_LISTED_BYTES),
    redacted: presented.redacted,
    max_retry: task.maxRetry,
    retried: task.retried,
    error_message: cut(presented.error, MAX_LISTED_ERROR_LENGTH).text,
    last_failed_at: timeOrNull(task.lastFailedAt),
    headers: presented.headers,
    group: task.group,
    timeout_seconds: task.timeout / 1000,
    retention_seconds: task.retention / 1000,
    ...(task.state === 'active' && { progress: showProgress(dashboard.presenter, task) }),
    ...ofState(task, workers, cut(presented.result.text, maxResultLength).text, dashboard.now),
  };
}

function ofState(task: TaskInfo, workers: Workers, result: string, now: number) {
  switch (task.state) {
    case 'active': {
      const worker = workers.get(workerKey(task.queue, task.id));
      const times = { start_time: timeOrDash(worker?.startedAt), deadline: timeOrDash(worker?.deadline) };
      return { ...times, is_orphaned: task.isOrphaned };
    }
    case 'pending':
      return { pending_since: timeOrNull(task.pendingSince) };
    case 'scheduled':
    case 'retry':
    case 'waiting':
      return { next_process_at: goTime(task.nextProcessAt) };
    case 'held':
      return {
        next_process_at: goTime(task.nextProcessAt),
        held_by: task.heldBy ?? '',
        held_since: timeOrNull(task.heldSince),
      };
    case 'archived':
      return { last_failed_at: goTime(task.lastFailedAt) };
    case 'completed':
      return { completed_at: goTime(task.completedAt), result, ttl_seconds: ttlOf(task, now) };
    default:
      return {};
  }
}

const timeOrDash = (date: Date | undefined): string => (date ? goTime(date) : '-');

/** Seconds until a completed task is deleted. */
export const ttlOf = (task: TaskInfo, now: number): number =>
  task.completedAt ? Math.trunc((task.completedAt.getTime() + task.retention - now) / 1000) : 0;
