import { mapConcurrent } from '../../../async.js';
import { CANCEL_OUTCOMES, type CancelOutcome } from '../../../broker/cancellation.js';
import { TaskNotFoundError } from '../../../errors.js';
import type { Dashboard } from '../../dashboard.js';
import { cancelsElsewhere, forbidden } from '../../dashboard.messages.js';
import { mayDo } from '../../permissions.js';
import { activeIds, forbiddenIds } from '../active-ids.js';
import { ApiError } from '../api-error.js';
import { hasRoomInArchive, requireRoomInArchive } from '../archive-room.js';
import type { ApiRequest, Route } from '../route.js';
import { choice, listOf, oneOf, type Schema, shape, text } from '../schema.js';

interface CancelBody {
  readonly reason?: string;
  readonly outcome?: CancelOutcome;
}

export const cancelFields: Readonly<Record<string, Schema>> = {
  reason: text("what the handler's signal and the stored error say"),
  outcome: oneOf(CANCEL_OUTCOMES, 'what becomes of the task; default retry; delete needs the role destroy'),
};
const CANCEL: Schema = choice(cancelFields);
const BATCH: Schema = choice({ task_ids: { ...listOf(text()), maxItems: 100_000 }, ...cancelFields }, ['task_ids']);
const CANCELS_AT_ONCE = 16;

/** @throws ApiError when the outcome needs a higher role: it deletes tasks, or fills the archive */
async function readCancel(dashboard: Dashboard, { body, role, params }: ApiRequest): Promise<CancelBody> {
  const { reason, outcome } = (body ?? {}) as CancelBody;
  if (outcome === 'delete' && !mayDo(role, 'destroy')) throw new ApiError('FORBIDDEN', forbidden('destroy', role));
  await dashboard.requireQueue(params.queue!);
  if (outcome === 'archive') await requireRoomInArchive(dashboard, params.queue!, role);
  return { reason, outcome };
}

async function cancel(dashboard: Dashboard, request: ApiRequest): Promise<void> {
  const options = await readCancel(dashboard, request);
  const { queue, id } = request.params as { queue: string; id: string };
  if (!seesEffects(request, options)) {
    if (!(await dashboard.inspector.getTaskInfo(queue, id))) throw new TaskNotFoundError(queue, id);
    const elsewhere = await forbiddenIds(dashboard, allowsIn(dashboard, request, options));
    if (elsewhere.has(id)) throw new ApiError('ELSEWHERE', cancelsElsewhere);
  }
  await dashboard.inspector.cancelProcessing(id, options);
}

async function batch(dashboard: Dashboard, request: ApiRequest) {
  const options = await readCancel(dashboard, request);
  const ids = (request.body as { task_ids: string[] }).task_ids;
  const allowed = await cancellable(dashboard, request, options, ids);
  const done = await cancelThese(dashboard, ids, options, allowed);
  return resultOf(ids, done);
}

const resultOf = (ids: readonly string[], done: readonly boolean[]) => ({
  canceled_ids: ids.filter((_, index) => done[index]),
  error_ids: ids.filter((_, index) => !done[index]),
});

const cancelThese = (
  { inspector }: Dashboard,
  ids: readonly string[],
  options: CancelBody,
  allowed: (id: string) => boolean,
): Promise<boolean[]> =>
  mapConcurrent(ids, CANCELS_AT_ONCE, async (id) => {
    if (!allowed(id)) return false;
    return inspector.cancelProcessing(id, options).then(
      () => true,
      () => false,
    );
  });

const neededFor = ({ outcome }: CancelBody) => (outcome === 'delete' ? 'destroy' : 'act');

/** A cancellation has no queue: it reaches tasks with that id in every queue. */
const seesEffects = ({ permissions }: ApiRequest, options: CancelBody): boolean =>
  permissions.mayEverywhere(options.outcome === 'archive' ? 'destroy' : neededFor(options));

/** Whether the sender may cancel this way in a queue. */
const allowsIn =
  (dashboard: Dashboard, { permissions }: ApiRequest, options: CancelBody) =>
  async (queue: string) => {
    const role = permissions.roleIn(queue);
    if (role === undefined || !mayDo(role, neededFor(options))) return false;
    return options.outcome !== 'archive' || hasRoomInArchive(dashboard, queue, role);
  };

/** The ids that belong to this queue and are not active where the sender may not cancel. */
async function cancellable(
  dashboard: Dashboard,
  request: ApiRequest,
  options: CancelBody,
  ids: readonly string[],
): Promise<(id: string) => boolean> {
  if (seesEffects(request, options)) return () => true;
  const elsewhere = await forbiddenIds(dashboard, allowsIn(dashboard, request, options));
  const found = await mapConcurrent(ids, CANCELS_AT_ONCE, (id) =>
    dashboard.broker.inspection.getTask(request.params.queue!, id).catch(() => undefined),
  );
  const own = new Set(ids.filter((_, index) => found[index]));
  return (id) => own.has(id) && !elsewhere.has(id);
}

/**
 * Reads the ids first, so that tasks claimed later are not cancelled. Only the trail uses the
 * return value.
 */
async function cancelAll(dashboard: Dashboard, request: ApiRequest) {
  const options = await readCancel(dashboard, request);
  const queue = request.params.queue!;
  const ids = await activeIds(dashboard, queue);
  const done = await cancelThese(dashboard, ids, options, await cancellable(dashboard, request, options, ids));
  return resultOf(ids, done);
}

/** Prepares to cancel tasks of the queue as the body says; the function returns how many it has asked for. */
export async function cancelSome(dashboard: Dashboard, request: ApiRequest) {
  const options = await readCancel(dashboard, request);
  return async (ids: readonly string[]): Promise<number> => {
    const done = await cancelThese(dashboard, ids, options, await cancellable(dashboard, request, options, ids));
    return done.filter(Boolean).length;
  };
}

const TASKS = 'queues/{queue}/active_tasks';
const optional = { body: CANCEL, bodyOptional: true } as const;

export const cancelRoutes: readonly Route[] = [
  { method: 'POST', path: 'queues/{queue}/tasks/{id}:cancel', summary: 'Cancel a task', ...optional, handle: cancel },
  { method: 'POST', path: `${TASKS}/{id}:cancel`, summary: 'Cancel a task', ...optional, handle: cancel },
  {
    method: 'POST',
    path: `${TASKS}:cancel_all`,
    summary: 'Cancel all active tasks',
    ...optional,
    handle: cancelAll,
  },
  {
    method: 'POST',
    path: `${TASKS}:batch_cancel`,
    summary: 'Cancel these tasks',
    body: BATCH,
    reply: shape({ canceled_ids: listOf(text()), error_ids: listOf(text()) }),
    handle: batch,
  },
];
