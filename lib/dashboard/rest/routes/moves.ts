import type { BulkOptions, BulkResult, MovableState } from '../../../inspector/bulk.js';
import type { MoveAction } from '../../../broker/inspection.js';
import { STATES_BY_ACTION } from '../../../task/actions.js';
import type { Dashboard } from '../../dashboard.js';
import type { DashboardRole } from '../../permissions.js';
import { ApiError } from '../api-error.js';
import { archiveLimitOf } from '../archive-room.js';
import { mapConcurrent } from '../../../async.js';
import type { Call, Method, Route } from '../route.js';
import { choice, count, listOf, oneOf, type Schema, shape, text } from '../schema.js';
import { collectionOf, placeOf, TASK_STATES, type TaskState } from '../task-states.js';

interface Move {
  readonly name: MoveAction;
  /** How asynqmon names the result, for all tasks of a state and for a batch. */
  readonly moved: string;
  readonly ids: string;
  readonly failed: string;
}

const MOVES: readonly Move[] = [
  { name: 'run', moved: 'scheduled', ids: 'pending_ids', failed: 'error_ids' },
  { name: 'archive', moved: 'archived', ids: 'archived_ids', failed: 'error_ids' },
  { name: 'delete', moved: 'deleted', ids: 'deleted_ids', failed: 'failed_ids' },
];

const BATCH: Schema = choice({ task_ids: { ...listOf(text()), maxItems: 100_000 } }, ['task_ids']);
const BATCH_AT_ONCE = 16;

interface Mover {
  readonly move: MoveAction;
  readonly role: DashboardRole;
}

/** One task, by the inspector's method of that name. */
function moveOne({ inspector }: Dashboard, { move, role }: Mover, queue: string, id: string, from?: Place) {
  if (move === 'run') return inspector.runTask(queue, id, from);
  if (move === 'delete') return inspector.deleteTask(queue, id, from);
  return inspector.archiveTask(queue, id, { ...from, ...archiveLimitOf(role) });
}

function moveAll({ inspector }: Dashboard, { move, role }: Mover, queue: string, place: Place): Promise<BulkResult> {
  const { state, ...options }: { state: MovableState } & BulkOptions = place;
  if (move === 'run') return inspector.runAllTasks(queue, state, options);
  if (move === 'delete') return inspector.deleteAllTasks(queue, state, options);
  return inspector.archiveAllTasks(queue, state, { ...options, ...archiveLimitOf(role) });
}

type Place = { state: MovableState; group?: string };

const single =
  (move: MoveAction) =>
  async (dashboard: Dashboard, { params, body, role }: Call): Promise<void> => {
    const { state } = (body ?? {}) as { state?: TaskState };
    if (state === undefined) return moveOne(dashboard, { move, role }, params.queue!, params.id!);
    if (state === 'active') throw new ApiError('BAD_REQUEST', 'active tasks cannot be moved; cancel them');
    const group = state === 'aggregating' ? await groupOf(dashboard, params.queue!, params.id!) : undefined;
    return moveOne(dashboard, { move, role }, params.queue!, params.id!, { state, group });
  };

async function groupOf({ inspector }: Dashboard, queue: string, id: string): Promise<string | undefined> {
  return (await inspector.getTaskInfo(queue, id))?.group || '-';
}

const all = (move: Move, state: MovableState) => async (dashboard: Dashboard, call: Call) => {
  const { params, role } = call;
  const place = placeOf(state, call) as Place;
  const { moved } = await moveAll(dashboard, { move: move.name, role }, params.queue!, place);
  return { [move.moved]: moved };
};

/** One by one: some may fail, as in asynqmon. */
const batch =
  (move: Move) =>
  async (dashboard: Dashboard, { params, body, role }: Call) => {
    await dashboard.requireQueue(params.queue!);
    const ids = (body as { task_ids: string[] }).task_ids;
    const done = await mapConcurrent(ids, BATCH_AT_ONCE, (id) =>
      moveOne(dashboard, { move: move.name, role }, params.queue!, id).then(
        () => true,
        () => false,
      ),
    );
    return { [move.ids]: ids.filter((_, index) => done[index]), [move.failed]: ids.filter((_, index) => !done[index]) };
  };

function routesOf(move: Move, state: MovableState): Route[] {
  const tasks = collectionOf(state);
  const [method, one, allOf]: [Method, string, Method] =
    move.name === 'delete' ? ['DELETE', `${tasks}/{id}`, 'DELETE'] : ['POST', `${tasks}/{id}:${move.name}`, 'POST'];
  const role = move.name === 'delete' ? 'destroy' : 'act';
  return [
    { method, path: one, role, summary: `${move.name} one task, in whatever state`, handle: single(move.name) },
    {
      method: allOf,
      path: `${tasks}:${move.name}_all`,
      role,
      summary: `${move.name} all that are ${state}`,
      reply: shape({ [move.moved]: count() }),
      handle: all(move, state),
    },
    {
      method: 'POST',
      path: `${tasks}:batch_${move.name}`,
      role,
      summary: `${move.name} these tasks`,
      body: BATCH,
      reply: shape({ [move.ids]: listOf(text()), [move.failed]: listOf(text()) }),
      handle: batch(move),
    },
  ];
}

const STATE: Schema = choice({ state: oneOf(TASK_STATES, 'only while it is in this state') });

const byId = ({ name }: Move): Route => ({
  method: name === 'delete' ? 'DELETE' : 'POST',
  path: name === 'delete' ? 'queues/{queue}/tasks/{id}' : `queues/{queue}/tasks/{id}:${name}`,
  summary: `${name} one task`,
  body: STATE,
  bodyOptional: true,
  handle: single(name),
});

export const moveRoutes: readonly Route[] = MOVES.flatMap((move) => [
  byId(move),
  ...STATES_BY_ACTION[move.name].flatMap((state) => routesOf(move, state)),
]);
