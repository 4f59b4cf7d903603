import { mapConcurrent } from '../../../async.js';
import type { MoveAction } from '../../../broker/inspection.js';
import type { BulkOptions, BulkResult, MovableState } from '../../../inspector/bulk.js';
import type { MoveOptions } from '../../../inspector/move-options.js';
import { STATES_BY_ACTION } from '../../../task/actions.js';
import type { Dashboard } from '../../dashboard.js';
import type { DashboardRole } from '../../permissions.js';
import { archiveLimitOf } from '../archive-room.js';
import { listPathOf, listScopeOf } from '../list-paths.js';
import type { ApiRequest, Method, Route } from '../route.js';
import { choice, count, listOf, type Schema, shape, text } from '../schema.js';
import { originOf, SEEN_STATE, seenState } from '../seen-state.js';

interface Move {
  readonly name: MoveAction;
  /** asynqmon's names of the results. */
  readonly moved: string;
  readonly ids: string;
  readonly failed: string;
}

const MOVES: readonly Move[] = [
  { name: 'run', moved: 'scheduled', ids: 'pending_ids', failed: 'error_ids' },
  { name: 'archive', moved: 'archived', ids: 'archived_ids', failed: 'error_ids' },
  { name: 'delete', moved: 'deleted', ids: 'deleted_ids', failed: 'failed_ids' },
];

const TASK_IDS: Schema = { ...listOf(text()), maxItems: 100_000 };
const BATCH: Schema = choice({ task_ids: TASK_IDS, state: SEEN_STATE }, ['task_ids']);
const BATCH_AT_ONCE = 16;

interface Mover {
  readonly move: MoveAction;
  readonly role: DashboardRole;
}

function moveOne(dashboard: Dashboard, { move, role }: Mover, queue: string, id: string, from: MoveOptions) {
  const { inspector } = dashboard;
  if (move === 'run') return inspector.runTask(queue, id, from);
  if (move === 'delete') return inspector.deleteTask(queue, id, from);
  return inspector.archiveTask(queue, id, { ...from, ...archiveLimitOf(dashboard, queue, role) });
}

function moveAll(dashboard: Dashboard, { move, role }: Mover, queue: string, scope: ListScope): Promise<BulkResult> {
  const { inspector } = dashboard;
  const { state, ...options }: { state: MovableState } & BulkOptions = scope;
  if (move === 'run') return inspector.runAllTasks(queue, state, options);
  if (move === 'delete') return inspector.deleteAllTasks(queue, state, options);
  return inspector.archiveAllTasks(queue, state, { ...options, ...archiveLimitOf(dashboard, queue, role) });
}

type ListScope = { state: MovableState; group?: string };

const single =
  (move: MoveAction) =>
  async (dashboard: Dashboard, { params, body, role }: ApiRequest): Promise<void> => {
    const [queue, id] = [params.queue!, params.id!];
    return moveOne(dashboard, { move, role }, queue, id, await originOf(dashboard, { queue, id }, seenState(body)));
  };

const all = (move: Move, state: MovableState) => async (dashboard: Dashboard, request: ApiRequest) => {
  const { params, role } = request;
  const scope = listScopeOf(state, request) as ListScope;
  const { moved } = await moveAll(dashboard, { move: move.name, role }, params.queue!, scope);
  return { [move.moved]: moved };
};

/** One by one: some may fail, as in asynqmon. */
const batch =
  (move: Move) =>
  async (dashboard: Dashboard, { params, body, role }: ApiRequest) => {
    const queue = params.queue!;
    await dashboard.requireQueue(queue);
    const ids = (body as { task_ids: string[] }).task_ids;
    const state = seenState(body);
    const moveIt = async (id: string): Promise<void> => {
      const origin = await originOf(dashboard, { queue, id }, state, params.group);
      await moveOne(dashboard, { move: move.name, role }, queue, id, origin);
    };
    const done = await mapConcurrent(ids, BATCH_AT_ONCE, (id) =>
      moveIt(id).then(
        () => true,
        () => false,
      ),
    );
    return { [move.ids]: ids.filter((_, index) => done[index]), [move.failed]: ids.filter((_, index) => !done[index]) };
  };

function routesOf(move: Move, state: MovableState): Route[] {
  const tasks = listPathOf(state);
  const [method, one, allOf]: [Method, string, Method] =
    move.name === 'delete' ? ['DELETE', `${tasks}/{id}`, 'DELETE'] : ['POST', `${tasks}/{id}:${move.name}`, 'POST'];
  const role = move.name === 'delete' ? 'destroy' : 'act';
  return [
    { method, path: one, role, summary: `${move.name} one task, in any state`, handle: single(move.name) },
    {
      method: allOf,
      path: `${tasks}:${move.name}_all`,
      role,
      summary: `${move.name} all ${state} tasks`,
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

const STATE: Schema = choice({ state: SEEN_STATE });

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
