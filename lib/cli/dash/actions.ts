import type { TaskLocation } from '../../broker/inspection.js';
import { isAllowed, type TaskAction } from '../../task/actions.js';
import type { TaskState } from '../../wire/states.js';
import { countTasks } from '../output/words.js';

export type DashAction = Extract<TaskAction, 'run' | 'archive' | 'delete' | 'cancel'>;

/** An action on tasks, as long as they are in the state in which the screen showed them. */
export interface TaskActionRequest {
  readonly action: DashAction;
  readonly queue: string;
  readonly location: TaskLocation;
  readonly ids: readonly string[];
}

export interface QueueActionRequest {
  readonly action: 'pause' | 'resume';
  readonly queue: string;
}

export type ActionRequest = TaskActionRequest | QueueActionRequest;

/** What an action has done. */
export interface ActionResult {
  readonly text: string;
  readonly good: boolean;
  /** The ids of the tasks it was done to. */
  readonly actedOn: readonly string[];
}

/** Why the action is impossible in the state; `undefined` if it is possible. */
export function refusalOf(action: DashAction, state: TaskState): string | undefined {
  if (isAllowed(action, state)) return undefined;
  if (action === 'cancel') return `Only active tasks can be cancelled; this one is ${state}: try A or D.`;
  if (state === 'active') return `An active task cannot be ${PARTICIPLES[action]}; C cancels it.`;
  if (action === 'run') return 'A pending task runs as soon as a server has a free slot.';
  return 'The task is archived already.';
}

const PARTICIPLES: Readonly<Record<DashAction, string>> = {
  run: 'run',
  archive: 'archived',
  delete: 'deleted',
  cancel: 'cancelled',
};

/** Whether the dash asks first: for what cannot be undone, and for what concerns several tasks. */
export const needsConfirmation = ({ action, ids }: TaskActionRequest): boolean =>
  action === 'delete' || (action !== 'run' && ids.length > 1);

export function questionOf({ action, ids, location }: TaskActionRequest): string {
  const what = ids.length === 1 ? `this ${location.state} task` : `${ids.length} ${location.state} tasks`;
  return `${action[0]!.toUpperCase()}${action.slice(1)} ${what}?${ids.length === 1 ? ` ${ids[0]}` : ''}`;
}

/** @param reason why the action failed for the first of the others */
export function resultOf(
  { action, ids }: TaskActionRequest,
  actedOn: readonly string[],
  reason?: string,
): ActionResult {
  const left = ids.length - actedOn.length;
  const done = actedOn.length > 0 ? describeDone(action, actedOn) : undefined;
  if (left === 0) return { text: `${done}.`, good: true, actedOn };
  const refused = ids.length === 1 ? reason! : `${countTasks(left)} not: ${reason}`;
  return { text: done ? `${done}; ${refused}` : refused, good: false, actedOn };
}

function describeDone(action: DashAction, ids: readonly string[]): string {
  const what = ids.length === 1 ? `Task "${ids[0]}"` : countTasks(ids.length);
  if (action === 'cancel') return `Asked to cancel ${ids.length === 1 ? `task "${ids[0]}"` : what}`;
  return `${what} ${ids.length === 1 ? 'is' : 'are'} ${action === 'run' ? 'pending now' : PARTICIPLES[action]}`;
}
