import type { PeriodicEntry } from '../../../inspector/periodic-entries.js';
import { REDACTED } from '../../../redaction/rules.js';
import { bytesCodec } from '../../../task/codec.js';
import { goUnquote } from '../../../wire/go-quote.js';
import { formatOption, parseOption } from '../../../wire/options.js';
import type { Dashboard } from '../../dashboard.js';
import { MAX_SHOWN_BYTES, type Subject } from '../../payload/presenter.js';
import { cut } from '../../payload/text.js';
import { ApiError } from '../api-error.js';
import { requireRoomForOneMore } from '../archive-room.js';
import { PAGE_PARAMETERS, pageOf, sizeOf } from '../query.js';
import { requireRoleIn } from '../require-role.js';
import type { ApiRequest, Route } from '../route.js';
import { count, flag, listOf, orNull, ref, type Schema, shape, text, time } from '../schema.js';
import { DECODED, showTask } from '../shapes/task.js';
import { goTime, timeOrNull } from '../shapes/times.js';

const ENTRY: Readonly<Record<string, Schema>> = {
  id: text(),
  spec: text(),
  task_type: text(),
  task_payload: text(),
  queue: text(),
  payload_cut: flag('whether the text was cut'),
  payload_size: count('bytes'),
  redacted: flag('whether a part of payload or headers is hidden or may be'),
  options: listOf(text('as asynq spells it: `MaxRetry(5)`')),
  next_enqueue_at: time(),
  prev_enqueue_at: orNull(time('null: not yet')),
  can_pause: flag("false: an entry of a scheduler of Go's asynq, which knows no pause"),
  paused_at: orNull(time('null: it is not paused. Else `next_enqueue_at` is skipped')),
};

export const entrySchemas = {
  Entry: shape(ENTRY),
  EntryWithPayload: shape({
    ...ENTRY,
    task_payload: text('whole, unless it is too large'),
    payload_base64: orNull(text('null when a part of the payload is hidden or may be, and when it is too large')),
    payload_decoded: DECODED,
    payload_redacted: flag('whether a part of the payload is hidden or may be'),
    payload_too_large: flag('it has more than 1,000,000 bytes: its text is cut, and nothing else of it is shown'),
  }),
  EnqueueEvent: shape({ task_id: text(), enqueued_at: time() }),
};

async function list(dashboard: Dashboard, request: ApiRequest) {
  const entries = await visibleEntries(dashboard, request);
  return { entries: entries.map((entry) => showEntry(dashboard, entry)) };
}

async function visibleEntries({ inspector }: Dashboard, { permissions }: ApiRequest): Promise<PeriodicEntry[]> {
  return (await inspector.schedulerEntries()).filter((entry) => permissions.maySee(queueOf(entry)));
}

export const queueOf = ({ taskOptions }: PeriodicEntry): string => taskOptions.queue ?? 'default';

export const subjectOf = (entry: PeriodicEntry): Subject => ({
  type: entry.taskType,
  queue: queueOf(entry),
  payload: entry.taskPayload,
  headers: entry.taskOptions.headers,
});

function showEntry({ presenter, settings }: Dashboard, entry: PeriodicEntry) {
  const { taskType: type, taskPayload: payload } = entry;
  const seen = presenter.presentRow(subjectOf(entry));
  const shown = cut(seen.payload.text, settings.maxPayloadLength);
  return {
    id: entry.id,
    spec: entry.spec,
    task_type: type,
    queue: queueOf(entry),
    task_payload: shown.text,
    payload_cut: shown.cut,
    payload_size: payload.length,
    redacted: seen.redacted,
    options: entry.options.map((option) =>
      withoutSecret(option, (name) => presenter.hidesHeader({ type, queue: queueOf(entry) }, name)),
    ),
    next_enqueue_at: goTime(entry.nextEnqueueAt),
    prev_enqueue_at: timeOrNull(entry.prevEnqueueAt),
    can_pause: entry.canPause,
    paused_at: timeOrNull(entry.pausedAt),
  };
}

/** Headers are options, too. One that cannot be parsed is hidden completely. */
function withoutSecret(option: string, isHidden: (header: string) => boolean): string {
  if (!/^\s*Header\b/i.test(option)) return option;
  const parsed = parseOption(option);
  if (parsed?.name !== 'Header') return REDACTED;
  const [name] = parsed.value;
  return isHidden(name) ? formatOption({ name: 'Header', value: [name, REDACTED] }) : option;
}

/**
 * The entry in the path.
 *
 * @throws ApiError when no running scheduler has it, or its queue is hidden
 */
export async function findEntry(dashboard: Dashboard, request: ApiRequest): Promise<PeriodicEntry> {
  const id = request.params.entry!;
  const entry = (await visibleEntries(dashboard, request)).find((candidate) => candidate.id === id);
  if (entry) return entry;
  throw new ApiError('NOT_FOUND', `no running scheduler has an entry "${id}"`);
}

/** One entry with its payload, in the form of a task. */
async function show(dashboard: Dashboard, request: ApiRequest) {
  const entry = await findEntry(dashboard, request);
  const { taskPayload: payload } = entry;
  const seen = dashboard.presenter.present(subjectOf(entry)).payload;
  const tooLarge = payload.length > MAX_SHOWN_BYTES;
  return {
    ...showEntry(dashboard, entry),
    ...(!tooLarge && { task_payload: seen.text, payload_cut: false }),
    payload_base64: seen.isHidden || tooLarge ? null : payload.toString('base64'),
    payload_decoded: seen.decoded ?? null,
    payload_redacted: seen.isHidden,
    payload_too_large: tooLarge,
  };
}

/** Enqueues the task of the entry now. */
async function run(dashboard: Dashboard, request: ApiRequest) {
  const { permissions } = request;
  const entry = await findEntry(dashboard, request);
  const role = requireRoleIn(permissions, queueOf(entry), 'act');
  const { taskType: type, taskPayload: payload } = entry;
  const options = { ...entry.taskOptions, ...groupOf(entry) };
  const bytes = payload.length > 0 ? payload : undefined;
  await requireRoomForOneMore(dashboard, queueOf(entry), role);
  const task = await dashboard.client.enqueue({ type, options, codec: bytesCodec }, bytes);
  return showTask(dashboard, task, permissions);
}

const change =
  (method: 'pauseSchedulerEntry' | 'resumeSchedulerEntry') =>
  async (dashboard: Dashboard, request: ApiRequest): Promise<void> => {
    const entry = await findEntry(dashboard, request);
    requireRoleIn(request.permissions, queueOf(entry), 'act');
    await dashboard.inspector[method](entry.id);
  };

/** asynq's scheduler applies the group, but its option parser drops it. */
function groupOf({ options }: PeriodicEntry): { group?: string } {
  const quoted = options.map((option) => /^Group\((.*)\)$/s.exec(option)?.[1]).findLast((text) => text !== undefined);
  const group = quoted === undefined ? undefined : goUnquote(quoted);
  return group ? { group } : {};
}

async function events(dashboard: Dashboard, request: ApiRequest) {
  const { params, query } = request;
  if (!(await maySeeHistory(dashboard, request))) return { events: [] };
  const found = await dashboard.inspector.schedulerEnqueueEvents(params.entry!, {
    size: sizeOf(query),
    page: pageOf(query),
  });
  return { events: found.map(({ taskId, enqueuedAt }) => ({ task_id: taskId, enqueued_at: goTime(enqueuedAt) })) };
}

/** Events have no queue. Without a running entry, only those who may see all queues see them. */
async function maySeeHistory({ inspector }: Dashboard, { params, permissions }: ApiRequest): Promise<boolean> {
  if (permissions.mayEverywhere('view')) return true;
  const entries = (await inspector.schedulerEntries()).filter(({ id }) => id === params.entry);
  return entries.length > 0 && entries.every((entry) => permissions.maySee(queueOf(entry)));
}

const queueOfEntry = async (dashboard: Dashboard, request: ApiRequest): Promise<string> =>
  queueOf(await findEntry(dashboard, request));

export const entryRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'scheduler_entries/{entry}',
    summary: 'A periodic task with its payload',
    scope: 'filtered',
    reply: ref('EntryWithPayload'),
    handle: show,
  },
  {
    method: 'GET',
    path: 'scheduler_entries',
    summary: 'Periodic tasks of all running schedulers',
    scope: 'filtered',
    reply: shape({ entries: listOf(ref('Entry')) }),
    handle: list,
  },
  {
    method: 'GET',
    path: 'scheduler_entries/{entry}/enqueue_events',
    query: PAGE_PARAMETERS,
    summary: 'The enqueues of a periodic task, newest first',
    scope: 'filtered',
    reply: shape({ events: listOf(ref('EnqueueEvent')) }),
    handle: events,
  },
  {
    method: 'POST',
    path: 'scheduler_entries/{entry}:run',
    summary: 'Enqueue its task now',
    status: 201,
    scope: 'filtered',
    reply: ref('Task'),
    handle: run,
    queueOf: queueOfEntry,
  },
  {
    method: 'POST',
    path: 'scheduler_entries/{entry}:pause',
    summary: 'Have all processes skip its planned times',
    scope: 'filtered',
    handle: change('pauseSchedulerEntry'),
    queueOf: queueOfEntry,
  },
  {
    method: 'POST',
    path: 'scheduler_entries/{entry}:resume',
    summary: 'End its pause; what was skipped is not made up for',
    scope: 'filtered',
    handle: change('resumeSchedulerEntry'),
    queueOf: queueOfEntry,
  },
];
