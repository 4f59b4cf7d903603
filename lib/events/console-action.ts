import type { TaskState } from '../wire/states.js';

/** What can be changed through the web console. */
export const CONSOLE_ACTIONS = [
  'enqueue',
  'clone',
  'edit_payload',
  'reschedule',
  'run',
  'archive',
  'delete',
  'cancel',
  'pause',
  'resume',
  'delete_queue',
  'run_schedule',
] as const;
export type ConsoleActionName = (typeof CONSOLE_ACTIONS)[number];

/**
 * `done`; `failed`: it was tried, and some of it may have happened; `refused`: nothing was tried; `started`: no result is known, as it is under
 * way, or the process ended meanwhile.
 */
export const CONSOLE_OUTCOMES = ['done', 'failed', 'refused', 'started'] as const;
export type ConsoleOutcome = (typeof CONSOLE_OUTCOMES)[number];

/** One change made through the web console, or an attempt at one: who, what, when, with which result. Never payloads, headers or reasons. */
export interface ConsoleAction {
  /** When it was asked for. */
  readonly at: Date;
  /** Who asked: what the dashboard's option `actor` returned, or the name of `request.user`, or an address. */
  readonly actor: string;
  readonly action: ConsoleActionName;
  readonly outcome: ConsoleOutcome;
  /** `host:pid` of the process that was asked. */
  readonly process: string;
  /** The queue it concerns; of a refused attempt it may not exist. */
  readonly queue?: string;
  /** Of a clone into another queue. */
  readonly toQueue?: string;
  /** Of one task. */
  readonly taskId?: string;
  /** The id of the task that was made. */
  readonly newTaskId?: string;
  /** Of several tasks: those that were named, or all in a state. */
  readonly scope?: 'batch' | 'all';
  readonly state?: TaskState;
  readonly group?: string;
  /** The id of the periodic entry. */
  readonly schedule?: string;
  /** Of `cancel`: what becomes of the task; of `delete_queue`: `force`. */
  readonly detail?: string;
  /** Of several tasks: how many it was done to. */
  readonly count?: number;
  /** Of several tasks: how many it was not done to. */
  readonly failed?: number;
  /** Why it failed or was refused: the code of the error, as in the header X-Asynq-Error. */
  readonly code?: string;
  /** So many before this one, of the same process, are not in the trail: it could not be written, or too many were refused. */
  readonly missing?: number;
}

/** Which actions of the console are wanted. */
export interface ConsoleActionFilter {
  /** Default: all. */
  action?: ConsoleActionName | readonly ConsoleActionName[];
  /** Default: all, but `started`, which is never told. */
  outcome?: ConsoleOutcome | readonly ConsoleOutcome[];
  /** Names of queues. Default: all. */
  queue?: string | readonly string[];
}

/** Whether an action is one that is asked for. */
export function consoleActionMatcher({ action, outcome, queue }: ConsoleActionFilter): (one: ConsoleAction) => boolean {
  const [actions, outcomes, queues] = [toList(action), toList(outcome), toList(queue)];
  return (one) =>
    (!actions || actions.includes(one.action)) &&
    (!outcomes || outcomes.includes(one.outcome)) &&
    (!queues || [one.queue, one.toQueue].some((name) => name !== undefined && queues.includes(name)));
}

const toList = <T extends string>(value: T | readonly T[] | undefined): readonly T[] | undefined =>
  value === undefined || Array.isArray(value) ? (value as readonly T[] | undefined) : [value as T];
