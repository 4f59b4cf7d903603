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
  'release_lock',
  'signal',
  'run_schedule',
  'pause_schedule',
  'resume_schedule',
  'cancel_workflow',
  'retry_workflow',
  'delete_workflow',
  'close_batch',
  'delete_batch',
  'retry_row',
  'delete_row',
] as const;
export type ConsoleActionName = (typeof CONSOLE_ACTIONS)[number];

/**
 * `done`; `failed`: it was tried, and may be done in part; `refused`: it was not tried; `started`:
 * the result is unknown, as the action is under way or its process has ended.
 */
export const CONSOLE_OUTCOMES = ['done', 'failed', 'refused', 'started'] as const;
export type ConsoleOutcome = (typeof CONSOLE_OUTCOMES)[number];

/**
 * A change in the web console, or an attempt: who, what, when and the result. It has no payloads,
 * headers or reasons.
 */
export interface ConsoleAction {
  /** When it was requested. */
  readonly at: Date;
  /**
   * Who requested it: the result of the dashboard's option `actor`, the name of `request.user`, or
   * an address.
   */
  readonly actor: string;
  readonly action: ConsoleActionName;
  readonly outcome: ConsoleOutcome;
  /** `host:pid` of the process that received the request. */
  readonly process: string;
  /** The queue; after a refused attempt it may not exist. */
  readonly queue?: string;
  /** Of a clone into another queue. */
  readonly toQueue?: string;
  /** Of one task. */
  readonly taskId?: string;
  /** The id of the task that was created. */
  readonly newTaskId?: string;
  /** Of several tasks: those with given ids, all in a state, or those of them that match. */
  readonly scope?: 'batch' | 'all' | 'matching';
  /**
   * Of tasks that match: what they had to have. Of `payload`, `field` and `error` only the names,
   * because what was searched for may be what is hidden.
   */
  readonly criteria?: string;
  readonly state?: TaskState;
  readonly group?: string;
  /** The id of the periodic entry. */
  readonly schedule?: string;
  /** The id of the run of a workflow. */
  readonly workflow?: string;
  /** The id of the batch. */
  readonly batch?: string;
  /** The id of a row of the outbox. */
  readonly row?: string;
  /** Of `cancel`: what becomes of the task; of `delete_queue`: `force`; of `signal`: its name. */
  readonly detail?: string;
  /** Of several tasks: how many it was done to. */
  readonly count?: number;
  /** Of several tasks: how many it was not done to. */
  readonly failed?: number;
  /** Why it failed or was refused: the code of the error, as in the header X-Asynq-Error. */
  readonly code?: string;
  /**
   * How many actions of this process just before are not in the trail: it could not be written, or
   * too many were refused.
   */
  readonly missing?: number;
}

/** Which actions of the console a listener gets. */
export interface ConsoleActionFilter {
  /** Default: all. */
  action?: ConsoleActionName | readonly ConsoleActionName[];
  /** Default: all. `started` is never emitted. */
  outcome?: ConsoleOutcome | readonly ConsoleOutcome[];
  /** Names of queues. Default: all. */
  queue?: string | readonly string[];
}

/** Returns a check whether an action fits the filter. */
export function consoleActionMatcher({
  action,
  outcome,
  queue,
}: ConsoleActionFilter): (candidate: ConsoleAction) => boolean {
  const [actions, outcomes, queues] = [toList(action), toList(outcome), toList(queue)];
  return (candidate) =>
    (!actions || actions.includes(candidate.action)) &&
    (!outcomes || outcomes.includes(candidate.outcome)) &&
    (!queues || [candidate.queue, candidate.toQueue].some((name) => name !== undefined && queues.includes(name)));
}

const toList = <T extends string>(value: T | readonly T[] | undefined): readonly T[] | undefined =>
  value === undefined || Array.isArray(value) ? (value as readonly T[] | undefined) : [value as T];
