import { CANCEL_OUTCOMES, type CancelOutcome } from '../../../broker/cancellation.js';
import { mayDo } from '../../access.js';
import type { Dashboard } from '../../dashboard.js';
import { forbidden } from '../../dashboard.messages.js';
import { eachOf } from '../../each.js';
import { ApiError } from '../api-error.js';
import { requireRoomInArchive } from '../archive-room.js';
import type { Call, Route } from '../route.js';
import { choice, listOf, oneOf, type Schema, shape, text } from '../schema.js';

interface CancelBody {
  readonly reason?: string;
  readonly outcome?: CancelOutcome;
}

const HOW: Readonly<Record<string, Schema>> = {
  reason: text("what the handler's signal and the stored error say"),
  outcome: oneOf(CANCEL_OUTCOMES, 'what becomes of the task; default retry; delete needs the role destroy'),
};
const CANCEL: Schema = choice(HOW);
const BATCH: Schema = choice({ task_ids: { ...listOf(text()), maxItems: 100_000 }, ...HOW }, ['task_ids']);
const AT_ONCE = 16;
const PAGE = 1_000;

/** @throws ApiError when it would delete tasks, or push archived ones out, and the role does not go so far */
async function howToCancel(dashboard: Dashboard, { body, role, params }: Call): Promise<CancelBody> {
  const { reason, outcome } = (body ?? {}) as CancelBody;
  if (outcome === 'delete' && !mayDo(role, 'destroy')) throw new ApiError('FORBIDDEN', forbidden('destroy', role));
  await dashboard.requireQueue(params.queue!);
  if (outcome === 'archive') await requireRoomInArchive(dashboard, params.queue!, role);
  return { reason, outcome };
}

async function cancel(dashboard: Dashboard, call: Call): Promise<void> {
  const how = await howToCancel(dashboard, call);
  await dashboard.inspector.cancelProcessing(call.params.id!, how);
}

async function batch(dashboard: Dashboard, call: Call) {
  const how = await howToCancel(dashboard, call);
  const ids = (call.body as { task_ids: string[] }).task_ids;
  const done = await cancelThese(dashboard, ids, how);
  return { canceled_ids: ids.filter((_, index) => done[index]), error_ids: ids.filter((_, index) => !done[index]) };
}

const cancelThese = ({ inspector }: Dashboard, ids: readonly string[], how: CancelBody): Promise<boolean[]> =>
  eachOf(ids, AT_ONCE, (id) =>
    inspector.cancelProcessing(id, how).then(
      () => true,
      () => false,
    ),
  );

/** The ids first, then the cancellations: a task that is taken meanwhile was not meant. */
async function cancelAll(dashboard: Dashboard, call: Call): Promise<void> {
  const how = await howToCancel(dashboard, call);
  const queue = call.params.queue!;
  const ids: string[] = [];
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await dashboard.broker.listIds(queue, { state: 'active', size: PAGE, cursor });
    ids.push(...page.ids);
    cursor = page.cursor;
  }
  await cancelThese(dashboard, ids, how);
}

const TASKS = 'queues/{queue}/active_tasks';
const optional = { body: CANCEL, bodyOptional: true } as const;

export const cancelRoutes: readonly Route[] = [
  { method: 'POST', path: 'queues/{queue}/tasks/{id}:cancel', summary: 'Cancel a task', ...optional, handle: cancel },
  { method: 'POST', path: `${TASKS}/{id}:cancel`, summary: 'Cancel a task', ...optional, handle: cancel },
  {
    method: 'POST',
    path: `${TASKS}:cancel_all`,
    summary: 'Cancel all that are active',
    ...optional,
    handle: cancelAll,
  },
  {
    ...{ method: 'POST', path: `${TASKS}:batch_cancel`, summary: 'Cancel these tasks', body: BATCH },
    reply: shape({ canceled_ids: listOf(text()), error_ids: listOf(text()) }),
    handle: batch,
  },
];
