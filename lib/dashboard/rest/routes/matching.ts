import type { MoveAction } from '../../../broker/inspection.js';
import { STATES_BY_ACTION } from '../../../task/actions.js';
import type { TaskInfo } from '../../../task/info.js';
import type { Dashboard } from '../../dashboard.js';
import { BadRequest } from '../api-error.js';
import { archiveLimitOf } from '../archive-room.js';
import { type Criteria, CRITERIA_FIELDS, CRITERIA_PARAMETERS, criteriaOf, requireCriteria } from '../criteria.js';
import { listPathOf, listScopeOf, TASK_STATES, type TaskState } from '../list-paths.js';
import { CURSOR_PARAMETER, given, positive } from '../query.js';
import type { ApiRequest, Route } from '../route.js';
import { type Scan, scan, SCAN_PARAMETER } from '../scan.js';
import { choice, count, orNull, type Schema, shape, text, time } from '../schema.js';
import { cancelFields, cancelSome } from './cancel.js';

/*
 * Actions on all tasks that match. A request reads a part of the list and acts on what it finds
 * there; `next_cursor` continues. So each is short, shows progress, and may be the last.
 */

interface MatchingBody extends Criteria {
  readonly scan?: number;
  readonly cursor?: string | null;
  readonly before?: string;
}

const NEXT = orNull(text('to go on; null at the end'));

const COUNTED: Schema = shape({
  matching: count('tasks that match, of those read'),
  scanned: count('entries read'),
  next_cursor: NEXT,
  counted_at: time('the time of the server: `before` of an action on what was counted'),
});

const DONE: Schema = shape({
  done: count('tasks it was done to'),
  skipped: count('tasks that matched, and had left the state by their turn'),
  scanned: count('entries read'),
  next_cursor: NEXT,
});

const FIELDS: Readonly<Record<string, Schema>> = {
  ...CRITERIA_FIELDS,
  scan: { ...count('entries that are read, 1 to 10,000; default 1,000'), minimum: 1 },
  cursor: orNull(text('the next_cursor of the request before')),
  before: time(
    'tasks that failed, were completed or became pending later are left alone, so that none is met twice; to the second',
  ),
};

const countMatching = (state: TaskState) => async (dashboard: Dashboard, request: ApiRequest) => {
  const { query, params } = request;
  const counted = { matching: 0, scanned: 0, next_cursor: null as string | null };
  const steps = scan(dashboard, {
    queue: params.queue!,
    ...listScopeOf(state, request),
    criteria: requireCriteria(criteriaOf(query)),
    entries: positive(query, 'scan'),
    cursor: given(query, 'cursor'),
  });
  for await (const { tasks, scanned, cursor } of steps) {
    counted.matching += tasks.length;
    counted.scanned += scanned;
    counted.next_cursor = cursor ?? null;
  }
  return { ...counted, counted_at: new Date(dashboard.now).toISOString() };
};

/** Does it to the tasks with these ids, and returns to how many. */
type Act = (ids: readonly string[]) => Promise<number>;

const actOnMatching =
  (state: TaskState, prepare: (dashboard: Dashboard, request: ApiRequest) => Promise<Act> | Act) =>
  async (dashboard: Dashboard, request: ApiRequest) => {
    const part = scanOf(state, request);
    await dashboard.requireQueue(part.queue);
    const act = await prepare(dashboard, request);
    const reply = { done: 0, skipped: 0, scanned: 0, next_cursor: null as string | null };
    for await (const { tasks, scanned, cursor } of scan(dashboard, part)) {
      const done = tasks.length === 0 ? 0 : await act(tasks.map(({ id }) => id));
      reply.done += done;
      reply.skipped += tasks.length - done;
      reply.scanned += scanned;
      reply.next_cursor = cursor ?? null;
    }
    return reply;
  };

/** @throws BadRequest */
function scanOf(state: TaskState, request: ApiRequest): Scan {
  const { scan: entries, cursor, before, ...criteria } = request.body as MatchingBody;
  const until = before === undefined ? Infinity : Date.parse(before);
  if (Number.isNaN(until)) throw new BadRequest('before must be a time in ISO 8601, as 2030-01-31T12:00:00Z');
  return {
    queue: request.params.queue!,
    ...listScopeOf(state, request),
    criteria: requireCriteria(criteria),
    entries,
    cursor: cursor || undefined,
    also: (task) => (changedAt(task)?.getTime() ?? 0) <= until,
  };
}

/** When the task came into its state, or had failed by then; `undefined` if nobody knows. */
function changedAt({ state, pendingSince, lastFailedAt, completedAt }: TaskInfo): Date | undefined {
  if (state === 'pending') return pendingSince;
  if (state === 'completed') return completedAt;
  return state === 'retry' || state === 'archived' ? lastFailedAt : undefined;
}

const moveMatching =
  (action: MoveAction, state: TaskState) =>
  (dashboard: Dashboard, request: ApiRequest): Act => {
    const queue = request.params.queue!;
    const limit = action === 'archive' ? archiveLimitOf(dashboard, queue, request.role) : {};
    const move = { queue, action, location: listScopeOf(state, request), ...limit };
    return async (ids) => (await dashboard.move(move, ids)).moved;
  };

const moves = (Object.keys(STATES_BY_ACTION) as (keyof typeof STATES_BY_ACTION)[])
  .filter((action): action is MoveAction => action === 'run' || action === 'archive' || action === 'delete')
  .flatMap((action) =>
    STATES_BY_ACTION[action].map((state): Route => ({
      method: 'POST',
      path: `${listPathOf(state)}:${action}_matching`,
      role: action === 'delete' ? 'destroy' : 'act',
      summary: `${action} the ${state} tasks that match, part by part`,
      body: choice(FIELDS),
      reply: DONE,
      handle: actOnMatching(state, moveMatching(action, state)),
    })),
  );

export const matchingRoutes: readonly Route[] = [
  ...TASK_STATES.map((state): Route => ({
    method: 'GET',
    path: `${listPathOf(state)}:count`,
    summary: `How many ${state} tasks match, part by part`,
    query: [...CRITERIA_PARAMETERS, SCAN_PARAMETER, CURSOR_PARAMETER],
    reply: COUNTED,
    cached: false,
    handle: countMatching(state),
  })),
  ...moves,
  {
    method: 'POST',
    path: `${listPathOf('active')}:cancel_matching`,
    summary: 'cancel the active tasks that match, part by part',
    body: choice({ ...FIELDS, ...cancelFields }),
    reply: DONE,
    handle: actOnMatching('active', cancelSome),
  },
];
