import { mapInTurns } from '../../async.js';
import type { DamagedEntry } from '../../broker/inspection.js';
import type { Dashboard } from '../dashboard.js';
import { criteriaOf } from './criteria.js';
import { listScopeOf, type TaskState } from './list-paths.js';
import { given, orderOf, positive } from './query.js';
import type { ApiRequest } from './route.js';
import { scan } from './scan.js';
import { showListed, type Workers } from './shapes/listed-task.js';

/** Limits of tasks and characters per reply. */
const MAX_TASKS = 1_000;
const MAX_REPLY_LENGTH = 2_000_000;

type ListedTask = ReturnType<typeof showListed>;

/** The reply to a search, as it grows. */
interface SearchReply {
  readonly tasks: ListedTask[];
  readonly damaged: { readonly id: string; readonly error: string }[];
  scanned: number;
  next_cursor: string | null;
}

/**
 * Scans `scan` entries, or fewer if the reply reaches its limits. Results are converted at once, so
 * that no more is held than is sent.
 */
export async function search(
  dashboard: Dashboard,
  state: TaskState,
  request: ApiRequest,
  workers: Workers,
): Promise<SearchReply> {
  const { query, params } = request;
  const cursor = given(query, 'cursor');
  const reply: SearchReply = { tasks: [], damaged: [], scanned: 0, next_cursor: cursor ?? null };
  let text = 0;
  const steps = scan(dashboard, {
    queue: params.queue!,
    ...listScopeOf(state, request),
    criteria: criteriaOf(query),
    entries: positive(query, 'scan'),
    cursor,
    ...orderOf(query),
  });
  for await (const found of steps) {
    const shown = await mapInTurns(found.tasks, (task) => showListed(dashboard, task, workers));
    reply.tasks.push(...shown);
    reply.damaged.push(...found.damaged.map(showDamaged));
    for (const task of shown) text += lengthOf(task);
    reply.scanned += found.scanned;
    reply.next_cursor = found.cursor ?? null;
    if (reply.tasks.length >= MAX_TASKS || text >= MAX_REPLY_LENGTH) break;
  }
  return reply;
}

const lengthOf = (task: ListedTask): number => JSON.stringify(task).length;

export const showDamaged = ({ id, error }: DamagedEntry) => ({ id, error: error.message });
