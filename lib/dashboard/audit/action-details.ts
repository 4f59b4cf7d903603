import { CONSOLE_ACTIONS, type ConsoleAction, type ConsoleActionName } from '../../events/console-action.js';
import { TASK_STATES } from '../../wire/states.js';
import { criteriaText } from './criteria-text.js';

/** What an action concerns, as far as the request names it. */
export type ActionTarget = Pick<
  ConsoleAction,
  | 'queue'
  | 'toQueue'
  | 'taskId'
  | 'group'
  | 'schedule'
  | 'workflow'
  | 'batch'
  | 'row'
  | 'scope'
  | 'criteria'
  | 'state'
  | 'detail'
>;

/** The result of an action. */
export type Effects = Pick<ConsoleAction, 'count' | 'failed' | 'newTaskId'>;

/** The part of a route that names its action. */
interface RouteName {
  readonly method: string;
  /** Below the API: `queues/{queue}:pause`. */
  readonly path: string;
}

/** A refused request may hold names as long as a path. */
const MAX_NAME_LENGTH = 500;

const isAction = (name: string): name is ConsoleActionName => CONSOLE_ACTIONS.some((action) => action === name);

/** What the trail calls the things of paths. */
const THING: Readonly<Record<string, string>> = { run: 'workflow', entry: 'schedule' };

/**
 * @throws TypeError for a route without an action: the trail must have every route that changes
 * something
 */
export function actionOf({ method, path }: RouteName): ConsoleActionName {
  if (path === 'queues/{queue}' && method === 'DELETE') return 'delete_queue';
  const verb = /:(\w+)$/.exec(path)?.[1] ?? (method === 'DELETE' ? 'delete' : 'enqueue');
  const [, of] = /\{(run|batch|row|entry)\}/.exec(path) ?? [];
  const thing = of === undefined ? '' : `_${THING[of] ?? of}`;
  const name = `${verb.replace(/^batch_|_(all|matching)$/, '')}${thing}`;
  if (isAction(name)) return name;
  throw new TypeError(`${method} ${path} changes something and has no name in the audit trail; see CONSOLE_ACTIONS`);
}

export function targetOf({ path }: RouteName, params: Readonly<Record<string, string>>): ActionTarget {
  const state = TASK_STATES.find((one) => path.includes(`/${one}_tasks`));
  const scope = path.includes(':batch_')
    ? 'batch'
    : path.endsWith('_all')
      ? 'all'
      : path.endsWith('_matching')
        ? 'matching'
        : undefined;
  return {
    queue: shorten(params['queue']),
    taskId: shorten(params['id']),
    group: shorten(params['group']),
    schedule: shorten(params['entry']),
    workflow: shorten(params['run']),
    batch: shorten(params['batch']),
    row: shorten(params['row']),
    scope,
    // The state in the path of a single task is only where the page saw it; the task may have
    // moved.
    state: scope && state,
  };
}

/** Details from the body and the query, which are valid at this point. */
export function detailsOf(
  action: ConsoleActionName,
  { scope }: ActionTarget,
  body: unknown,
  query: URLSearchParams,
): ActionTarget {
  const { queue, outcome, name } = (body ?? {}) as { queue?: string; outcome?: string; name?: string };
  const criteria = scope === 'matching' ? shorten(criteriaText(body)) : undefined;
  if (action === 'cancel') return { detail: outcome, criteria };
  if (action === 'signal') return { detail: shorten(name) };
  if (criteria !== undefined) return { criteria };
  if (action === 'delete_queue') return { detail: query.get('force') === 'true' ? 'force' : undefined };
  return action === 'clone' ? { toQueue: shorten(queue) } : {};
}

const FAILED = ['error_ids', 'failed_ids'];

/** Reads the effects from the reply: a new task, a number of tasks, or the ids of a batch. */
export function effectsOf(value: unknown): Effects {
  if (typeof value !== 'object' || value === null) return {};
  const reply = value as Readonly<Record<string, unknown>>;
  if (typeof reply['done'] === 'number') return { count: reply['done'], failed: Number(reply['skipped']) };
  if (typeof reply['id'] === 'string') return { newTaskId: shorten(reply['id']) };
  const numbers = Object.values(reply).filter((one) => typeof one === 'number');
  if (numbers.length === 1) return { count: numbers[0] };
  const lengths = Object.entries(reply).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]));
  const sum = (failed: boolean): number =>
    lengths.filter(([name]) => FAILED.includes(name) === failed).reduce((total, [, ids]) => total + ids.length, 0);
  return lengths.length === 0 ? {} : { count: sum(false), failed: sum(true) };
}

const shorten = (name: string | undefined): string | undefined =>
  name !== undefined && name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name;
