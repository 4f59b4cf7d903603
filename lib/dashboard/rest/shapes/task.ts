import type { RunningServer } from '../../../inspector/views.js';
import { isAllowed, TASK_ACTIONS, type TaskAction } from '../../../task/actions.js';
import type { TaskInfo } from '../../../task/info.js';
import type { Dashboard } from '../../dashboard.js';
import { MAX_SHOWN_BYTES } from '../../payload/presenter.js';
import { cut } from '../../payload/text.js';
import { type DashboardRole, mayDo, type Permissions } from '../../permissions.js';
import { sha256 } from '../payload-body.js';
import { amount, anything, count, flag, listOf, mapOf, oneOf, orNull, ref, shape, text, time } from '../schema.js';
import { ttlOf } from './listed-task.js';
import { toSubject } from './subject.js';
import { NOTE_SCHEMAS, showNotes } from './task-notes.js';
import { showWait } from './task-wait.js';
import { goTime, secondsOrEmpty, timeOrNull } from './times.js';

export const DECODED = orNull({ anyOf: [shape({ decoder: text('its name'), value: anything('JSON') })] });

export const taskSchemas = {
  Task: shape({
    id: text(),
    queue: text(),
    type: text(),
    state: text(),
    enqueued_at: orNull(time('null if it is not known: Go clients and ids of applications do not say it')),
    payload: text('its text, or `non-printable bytes`'),
    payload_size: count('bytes'),
    payload_base64: orNull(text('null when a part of the payload is hidden or may be, and when it is too large')),
    payload_sha256: orNull(
      text('of the bytes, in hexadecimal; an edit sends it as `replaces`; null where payload_base64 is'),
    ),
    payload_decoded: DECODED,
    payload_redacted: flag('whether a part of the payload is hidden or may be'),
    payload_too_large: flag('it has more than 1,000,000 bytes: its text is cut, and nothing else of it is shown'),
    redacted: flag('whether a part of the task is hidden or may be'),
    max_retry: count(),
    retried: count(),
    crashes: count('how often its server has died while it ran'),
    last_crashes: listOf(
      shape({
        at: time('the last sign of life of its server'),
        servers: listOf(text('host:pid of one that went silent then; none: not known, several: one of them')),
        others: count('tasks of its queue that lost their server then, at least'),
      }),
    ),
    error_message: text(),
    last_failed_at: text('RFC 3339 in whole seconds, or empty; so are deadline, next_process_at and completed_at'),
    deadline: text(),
    expires_at: orNull(time('when it expires unless its first attempt has begun')),
    next_process_at: text('of a pending task now, as in asynqmon'),
    pending_since: orNull(time('when it last became pending; null in other states, and if that is not known')),
    held_by: orNull(text('the scope of the limit that holds it back, or `~newer:` and its type; null in other states')),
    held_since: orNull(time('null in other states')),
    completed_at: text(),
    timeout_seconds: amount('of one attempt; 0: none but the deadline'),
    retention_seconds: amount(),
    ttl_seconds: count('how long it is still kept; 0 unless completed'),
    group: text(),
    headers: mapOf(text()),
    result: text(),
    result_size: count('bytes'),
    result_base64: orNull(text()),
    result_decoded: DECODED,
    result_redacted: flag(),
    ...NOTE_SCHEMAS,
    worker: orNull({
      anyOf: [shape({ server_id: text(), host: text(), pid: count(), started_at: time(), deadline: time() })],
    }),
    waits: orNull(ref('TaskWait')),
    actions: listOf(oneOf(TASK_ACTIONS, 'what the sender of this request may do with it now')),
  }),
};

/** @param servers running servers, to find the task's worker */
export async function showTask(
  dashboard: Dashboard,
  task: TaskInfo,
  permissions: Permissions,
  servers: readonly RunningServer[] = [],
) {
  const presented = dashboard.presenter.present(toSubject(task));
  return {
    id: task.id,
    queue: task.queue,
    type: task.type,
    state: task.state,
    enqueued_at: timeOrNull(task.enqueuedAt),
    group: task.group,
    ...showPayload(dashboard, task, presented),
    ...showResult(dashboard, task, presented),
    ...showNotes(dashboard, task),
    redacted: presented.redacted,
    max_retry: task.maxRetry,
    retried: task.retried,
    crashes: task.crashes,
    last_crashes: task.lastCrashes.map(({ at, servers, others }) => ({
      at: goTime(at),
      servers: [...servers],
      others,
    })),
    error_message: presented.error,
    last_failed_at: secondsOrEmpty(task.lastFailedAt),
    deadline: secondsOrEmpty(task.deadline),
    expires_at: timeOrNull(task.expiresAt),
    next_process_at: secondsOrEmpty(task.nextProcessAt),
    pending_since: timeOrNull(task.pendingSince),
    held_by: task.heldBy ?? null,
    held_since: timeOrNull(task.heldSince),
    completed_at: secondsOrEmpty(task.completedAt),
    timeout_seconds: task.timeout / 1000,
    retention_seconds: task.retention / 1000,
    ttl_seconds: task.state === 'completed' ? ttlOf(task, dashboard.now) : 0,
    headers: presented.headers,
    worker: showWorker(task, servers),
    waits: await showWait(dashboard, task, presented.payload.isHidden),
    actions: actionsFor(dashboard, task, permissions.roleIn(task.queue), presented.payload.isHidden),
  };
}

type Presented = ReturnType<Dashboard['presenter']['present']>;

function showPayload({ settings }: Dashboard, { payload }: TaskInfo, presented: Presented) {
  const tooLarge = payload.length > MAX_SHOWN_BYTES;
  const whole = presented.payload.isHidden || tooLarge ? undefined : payload;
  return {
    payload: tooLarge ? cut(presented.payload.text, settings.maxPayloadLength).text : presented.payload.text,
    payload_size: payload.length,
    payload_base64: whole?.toString('base64') ?? null,
    payload_sha256: whole ? sha256(whole) : null,
    payload_decoded: presented.payload.decoded ?? null,
    payload_redacted: presented.payload.isHidden,
    payload_too_large: tooLarge,
  };
}

function showResult({ settings }: Dashboard, { result }: TaskInfo, presented: Presented) {
  const tooLarge = (result?.length ?? 0) > MAX_SHOWN_BYTES;
  return {
    result: tooLarge ? cut(presented.result.text, settings.maxResultLength).text : presented.result.text,
    result_size: result?.length ?? 0,
    result_base64: result === undefined || presented.result.isHidden || tooLarge ? null : result.toString('base64'),
    result_decoded: presented.result.decoded ?? null,
    result_redacted: presented.result.isHidden,
  };
}

function showWorker({ queue, id, state }: TaskInfo, servers: readonly RunningServer[]) {
  if (state !== 'active') return null;
  for (const server of servers) {
    const worker = server.activeWorkers.find((one) => one.taskId === id && one.queue === queue);
    if (!worker) continue;
    const times = { started_at: goTime(worker.startedAt), deadline: goTime(worker.deadline) };
    return { server_id: server.id, host: server.host, pid: server.pid, ...times };
  }
  return null;
}

function actionsFor(
  { settings }: Dashboard,
  { state, payload }: TaskInfo,
  role: DashboardRole | undefined,
  isHidden: boolean,
): TaskAction[] {
  if (settings.readOnly) return [];
  return TASK_ACTIONS.filter((action) => {
    // A payload that is not shown completely cannot be edited.
    if (action === 'edit' && (isHidden || payload.length > MAX_SHOWN_BYTES)) return false;
    return isAllowed(action, state) && mayDo(role, action === 'delete' ? 'destroy' : 'act');
  });
}
