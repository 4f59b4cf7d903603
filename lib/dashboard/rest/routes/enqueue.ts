import { TaskNotFoundError, TaskStateError } from '../../../errors.js';
import { bytesCodec, type PayloadCodec } from '../../../task/codec.js';
import type { TaskInfo } from '../../../task/info.js';
import type { TaskOptions } from '../../../task/options.js';
import { CRASHES_HEADER } from '../../../wire/crashes.js';
import { EXPIRY_HEADER, expiryOf } from '../../../wire/expiry.js';
import { FAILED_STEP_HEADER } from '../../../wire/failed-step.js';
import { beforeUndoing, UNDOING_HEADER } from '../../../wire/undoing.js';
import type { Dashboard } from '../../dashboard.js';
import type { DashboardRole } from '../../permissions.js';
import { ApiError } from '../api-error.js';
import { requireRoomForOneMore } from '../archive-room.js';
import { encodePayload, type PayloadBody, PAYLOAD_FIELDS, readPayload, sha256 } from '../payload-body.js';
import { headersOfCopy, refuseUniqueLock, requireSameRedaction } from '../redaction-checks.js';
import type { ApiRequest, Route } from '../route.js';
import { amount, choice, ref, text, time } from '../schema.js';
import { originOf, SEEN_STATE, seenState } from '../seen-state.js';
import { showTask } from '../shapes/task.js';
import { overlay, readOptions, TASK_FIELDS, type TaskBody, toDate } from '../task-body.js';

interface NewTask {
  readonly type: string;
  readonly payload: { readonly value: unknown; readonly codec: PayloadCodec } | undefined;
  readonly options: TaskOptions;
}

/** Enqueues through the application's client, with its checks and defaults. */
async function put(dashboard: Dashboard, role: DashboardRole, { type, payload, options }: NewTask): Promise<TaskInfo> {
  await requireRoomForOneMore(dashboard, options.queue!, role);
  return dashboard.client.enqueue({ type, options, codec: payload?.codec }, payload?.value);
}

async function enqueue(dashboard: Dashboard, { params, body, role, permissions }: ApiRequest) {
  const given = body as TaskBody & { type: string };
  const options = { ...readOptions(given), queue: params.queue! };
  const payload = readPayload(given, dashboard.codec);
  if (mayLock(dashboard, given)) {
    const subject = { type: given.type, queue: params.queue!, headers: given.headers, payload: bytesOf(payload) };
    refuseUniqueLock(dashboard.presenter, subject, given.unique_seconds);
  }
  return showTask(dashboard, await put(dashboard, role, { type: given.type, payload, options }), permissions);
}

/** Whether the task takes a unique lock, as requested or by default. */
const mayLock = ({ uniqueByDefault }: Dashboard, { unique_seconds }: TaskBody): boolean =>
  unique_seconds === undefined ? uniqueByDefault : unique_seconds !== 0;

const bytesOf = (payload: NewTask['payload']): Buffer => Buffer.from((payload && encodePayload(payload)) ?? []);

async function find({ inspector }: Dashboard, { params }: ApiRequest): Promise<TaskInfo> {
  const task = await inspector.getTaskInfo(params.queue!, params.id!);
  if (task) return task;
  throw new TaskNotFoundError(params.queue!, params.id!);
}

/** Copies the bytes on the server, so that a hidden payload can be cloned, too. */
async function clone(dashboard: Dashboard, request: ApiRequest) {
  const { presenter, codec, now } = dashboard;
  const task = await find(dashboard, request);
  const { queue = task.queue, type = task.type, ...changes } = (request.body ?? {}) as TaskBody & { queue?: string };
  const { headers, ownHeaders } = headersOfCopy(presenter, task, changes.headers);
  const payload = readPayload(changes, codec);
  requireSameRedaction(presenter, task, { type, queue, headers, ownHeaders, samePayload: payload === undefined });
  if (mayLock(dashboard, changes)) {
    const subject = { type, queue, headers, payload: payload ? bytesOf(payload) : task.payload };
    refuseUniqueLock(presenter, subject, changes.unique_seconds);
  }
  const copied = { value: task.payload.length > 0 ? task.payload : undefined, codec: bytesCodec };
  const options = overlay(
    { ...optionsOf(task, now), queue },
    { ...readOptions(changes), headers: lasting(headers, now) },
  );
  const made = await put(dashboard, request.permissions.roleIn(queue)!, { type, payload: payload ?? copied, options });
  return showTask(dashboard, made, request.permissions);
}

/** Without id, start time, expired deadline and unique lock. */
function optionsOf(task: TaskInfo, now: number): TaskOptions {
  const own = beforeUndoing(task);
  const until = own ? own.deadline * 1000 : (task.deadline?.getTime() ?? 0);
  const deadline = until > now ? new Date(until) : undefined;
  const { timeout, retention } = task;
  const { maxRetry } = own ?? task;
  return { maxRetry, timeout, retention, deadline, ...(task.group !== '' && { group: task.group }) };
}

/** What a task has been through, which its copy has not. */
const ITS_OWN: readonly string[] = [CRASHES_HEADER, UNDOING_HEADER, FAILED_STEP_HEADER];

/** The headers without an expiry that has passed, as the copy runs, and without what is of the task alone. */
const lasting = (headers: TaskInfo['headers'], now: number): TaskInfo['headers'] => {
  const isOver = (expiryOf(headers)?.at ?? Infinity) <= now;
  const left = (name: string): boolean => !ITS_OWN.includes(name) && !(isOver && name === EXPIRY_HEADER);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => left(name)));
};

/** Nobody may overwrite a payload that they have not loaded completely. */
const REPLACES = text(
  'the SHA-256, in hexadecimal, of the payload it replaces: payload_sha256 of the task, or of the bytes downloaded',
);

async function editPayload(dashboard: Dashboard, request: ApiRequest): Promise<void> {
  const task = await find(dashboard, request);
  const { replaces, ...given } = request.body as PayloadBody & { replaces: string };
  const payload = readPayload(given, dashboard.codec);
  if (!payload) throw new ApiError('BAD_REQUEST', `give one of ${Object.keys(PAYLOAD_FIELDS).join(', ')}`);
  if (dashboard.presenter.hidesBytes(task, 'payload')) {
    throw new ApiError('FORBIDDEN', `the payload of "${task.type}" is redacted, so it cannot be edited`);
  }
  if (replaces.toLowerCase() !== sha256(task.payload)) {
    throw new TaskStateError(`the payload of task "${task.id}" is not the one to be replaced; load it again`);
  }
  const bytes = encodePayload(payload);
  await dashboard.inspector.updateTaskPayload(task.queue, task.id, bytes, { replaces: task.payload });
}

interface When {
  readonly process_at?: string;
  readonly process_in_seconds?: number;
}

async function reschedule(dashboard: Dashboard, { params, body }: ApiRequest): Promise<void> {
  const [queue, id] = [params.queue!, params.id!];
  const { process_at, process_in_seconds: seconds } = body as When;
  if ((process_at === undefined) === (seconds === undefined)) {
    throw new ApiError('BAD_REQUEST', 'give either process_at or process_in_seconds');
  }
  const when = toDate(process_at, 'process_at') ?? seconds! * 1000;
  await dashboard.inspector.rescheduleTask(queue, id, when, await originOf(dashboard, { queue, id }, seenState(body)));
}

const TASK = 'queues/{queue}/tasks/{id}';

export const enqueueRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: 'queues/{queue}/tasks',
    summary: 'Enqueue a task',
    status: 201,
    body: choice(TASK_FIELDS, ['type']),
    reply: ref('Task'),
    handle: enqueue,
  },
  {
    method: 'POST',
    path: `${TASK}:clone`,
    summary: 'Enqueue a copy, with changes',
    status: 201,
    body: choice({ ...TASK_FIELDS, queue: text('default: the same') }),
    bodyOptional: true,
    reply: ref('Task'),
    handle: clone,
  },
  {
    method: 'POST',
    path: `${TASK}:edit_payload`,
    summary: 'Give a waiting task another payload',
    body: choice({ ...PAYLOAD_FIELDS, replaces: REPLACES }, ['replaces']),
    handle: editPayload,
  },
  {
    method: 'POST',
    path: `${TASK}:reschedule`,
    summary: 'Have a task run at another time',
    body: choice({ process_at: time(), process_in_seconds: amount(), state: SEEN_STATE }),
    handle: reschedule,
  },
];
