import type { StepLink } from '../task/contexts.js';
import type { StoredResult } from './consumer.js';
import type { EnqueueRequest } from './enqueue-request.js';
import type { Caused, FailurePolicy, MarkRequest } from './links.js';

/*
 * Runs of workflows. A run lives in one queue, its place, with the whole graph: every decision is one
 * step there. Its steps are tasks of any queue.
 */

export const RUN_STATES = ['running', 'succeeded', 'failed', 'cancelled'] as const;
export type RunState = (typeof RUN_STATES)[number];

/**
 * `waiting`: for steps before it; `ready`: its task is stored, or on the way; `cancelled`: it will not
 * run, unless what failed before it succeeds in the end.
 */
export const STEP_STATES = ['waiting', 'ready', 'succeeded', 'failed', 'cancelled'] as const;
export type StepState = (typeof STEP_STATES)[number];

/**
 * The id of the task of a step: the ids of run and step, with a `~` between them, and for each `/` of the step and the
 * first of the run, and `~~` for each further one of the run. The buttons of asynqmon do nothing, without an error, for a task whose id has a `/`. No id of a run
 * that a client starts has a `~`, nor has a name of a step.
 */
export const taskIdOfStep = (run: string, step: string): string =>
  `${run.replace('/', '~').replaceAll('/', '~~')}~${step.replaceAll('/', '~')}`;

export interface NewStep {
  readonly name: string;
  /** The message's queue is the queue of the step, its id is `taskIdOfStep`. */
  readonly request: EnqueueRequest;
  /** Names of steps, each once: of this call, or of the run. */
  readonly after: readonly string[];
  readonly onFailure: FailurePolicy;
  /** Its failure counts as done. */
  readonly optional: boolean;
  /** Milliseconds after its release until it may start; 0: at once. */
  readonly delay: number;
  /** Where the end of its task is remembered for those that wait for its key. */
  readonly mark?: MarkRequest | undefined;
}

export interface NewRun {
  readonly id: string;
  readonly name: string;
  readonly steps: readonly NewStep[];
  /** Seconds that the run and its results are kept after its end. */
  readonly retention: number;
  /** Unix seconds: what has not ended by then is cancelled. `undefined`: no limit of the run itself. */
  readonly deadline: number | undefined;
}

export interface StoredStep {
  readonly name: string;
  readonly type: string;
  readonly queue: string;
  /** In the order of the graph. */
  readonly after: readonly string[];
  readonly onFailure: FailurePolicy;
  readonly optional: boolean;
  readonly state: StepState;
  /** Why it failed or was cancelled. */
  readonly error: string | undefined;
  /** Milliseconds since the epoch. */
  readonly readyAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly hasResult: boolean;
}

export interface RunSummary {
  readonly queue: string;
  readonly id: string;
  readonly name: string;
  readonly state: RunState;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  readonly steps: number;
  /** Steps that have not ended. */
  readonly open: number;
  readonly failed: number;
  /** Why it was cancelled. */
  readonly reason: string | undefined;
}

/** Why a cancelled step has not run, if its task has not said why; `undefined` for a step that was not cancelled. */
export function reasonOfCancelled(
  { state, after, onFailure }: Pick<StoredStep, 'state' | 'after' | 'onFailure'>,
  steps: ReadonlyMap<string, Pick<StoredStep, 'state' | 'optional'>>,
  reasonOfRun: string | undefined,
): string | undefined {
  if (state !== 'cancelled') return undefined;
  if (onFailure !== 'cancel') return reasonOfRun;
  for (const name of after) {
    const before = steps.get(name);
    if (before?.state === 'failed' && !before.optional) return `"${name}" has failed`;
    if (before?.state === 'cancelled' && reasonOfRun === undefined) return `"${name}" was cancelled`;
  }
  return reasonOfRun;
}

export interface StoredRun extends RunSummary {
  readonly graph: readonly StoredStep[];
}

/*
 * A run is running while a step is ready: as a graph has no cycle, nothing else can proceed. Then it has
 * failed if a step that is not optional has, else it has succeeded. A failed step whose task succeeds in
 * the end, whoever ran it again, revives what was cancelled for it, and with it the run. A cancelled
 * run only notes how the tasks end that were under way.
 */
export interface WorkflowsRole {
  /** Starts runs, each all or nothing. `exists`: there is a run with this id, nothing was written. */
  start(
    queue: string,
    runs: readonly NewRun[],
  ): Promise<Caused & { readonly statuses: readonly ('started' | 'exists')[] }>;
  /**
   * Adds steps to a run, in any order, all or none. `ended`: the run is over; `unknown`: a step named in
   * `after`, or they wait for each other in a circle, so that there is none to begin with; `taken`: a name.
   */
  grow(
    queue: string,
    run: string,
    steps: readonly NewStep[],
  ): Promise<Caused & { readonly status: 'added' | 'missing' | 'ended' | 'unknown' | 'taken' }>;
  run(queue: string, run: string): Promise<StoredRun | undefined>;
  /** State and counts only. */
  summary(queue: string, run: string): Promise<RunSummary | undefined>;
  /** Newest first. */
  runs(queue: string, options: { readonly offset: number; readonly size: number }): Promise<RunSummary[]>;
  /**
   * Results of steps, in order; `undefined` where there is none.
   *
   * @param since when the run has started, if a task of it asks: then nothing is read that this process has stored itself
   */
  results(
    queue: string,
    run: string,
    steps: readonly string[],
    since?: string,
  ): Promise<readonly (StoredResult | undefined)[]>;
  /**
   * Results of the steps before this one, by name, in the order in which it names them; without those that
   * have none. `undefined` without such a run. `since` as above.
   */
  resultsBefore(step: StepLink): Promise<ReadonlyMap<string, StoredResult> | undefined>;
  /**
   * Ends a run: what waits is cancelled, tasks that no server has claimed yet are deleted, and the ids of
   * those that may be under way are returned for the caller to cancel. The error of a step that has not run is the reason.
   */
  cancel(
    queue: string,
    run: string,
    reason: string,
  ): Promise<
    Caused & {
      readonly status: 'cancelled' | 'missing' | 'ended';
      readonly tasks: readonly { queue: string; id: string }[];
    }
  >;
  /**
   * The failed steps of a run are ready again, and the run is running: their tasks run again, those that are gone are created
   * anew. `steps` is how many there are.
   */
  retry(
    queue: string,
    run: string,
  ): Promise<Caused & { readonly status: 'retried' | 'missing' | 'notFailed'; readonly steps: number }>;
  /**
   * Deletes an ended run with its results, and the archived tasks of its steps. `running`: nothing was
   * deleted.
   */
  delete(queue: string, run: string): Promise<Caused & { readonly status: 'deleted' | 'missing' | 'running' }>;
}
