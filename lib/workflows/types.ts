import type { FailurePolicy } from '../broker/links.js';
import type { TaskOptions } from '../task/options.js';
import type { Duration } from '../duration.js';

/** What a step does when those it waits for have ended, and how its task is stored. */
export interface StepOptions<Names extends string = string> {
  /**
   * The steps it waits for: names of steps, or of workflows that are steps, whose every end it
   * waits for. Default: none, it is ready at the start.
   */
  after?: Names | readonly Names[];
  /**
   * What it does when one of these failed: `cancel` does not run, until that one succeeds
   * after all; `run` runs all the same; `wait` waits for a rerun. Default `cancel`.
   */
  onFailure?: FailurePolicy;
  /** Its failure counts as done, for the steps after it and for the run. Default false. */
  optional?: boolean;
  /**
   * Options of its task, but for `taskId` and `group`. `processIn` counts from when the step is
   * ready; a unique lock is taken then. Default: those of its definition.
   */
  options?: StepTaskOptions;
}

/** Options of the task of a step: the run gives the id, and a step has no group. */
export type StepTaskOptions = Omit<TaskOptions, 'taskId' | 'group'>;

/** How a workflow is placed as a step of another. */
export interface NestedOptions<Names extends string = string> {
  /** What its first steps wait for. Default: nothing, they are ready at the start. */
  after?: Names | readonly Names[];
  /** What its first steps do when one of these failed. Default: what each of them says. */
  onFailure?: FailurePolicy;
}

/** Options of the runs of a workflow; those of `start` override them. */
export interface RunOptions {
  /**
   * The queue that keeps the run, and whose slot of a Redis Cluster has all of it. Default: the
   * queue of the first step. Two runs of one id in different queues are different runs.
   */
  queue?: string;
  /** How long an ended run and its results are kept, in whole seconds, rounded up; at least 5. Default 7 days. */
  retention?: Duration;
  /** What has not ended by then is cancelled. Default: no limit but those of the tasks. */
  timeout?: Duration;
}

export const RUN_OPTION_NAMES = ['queue', 'retention', 'timeout'] as const satisfies readonly (keyof RunOptions)[];

/** Options of one run. */
export interface StartOptions extends RunOptions {
  /**
   * 1 to 200 characters without white space, controls, braces and `~`. A second start of the same
   * workflow with the same id returns the run that exists: only the name of the workflow and the id
   * count, its steps are not compared. Default: a UUID.
   */
  id?: string;
}

/** The steps of a workflow of this prefix. */
export type Prefixed<Prefix extends string, Steps> = {
  [Name in keyof Steps & string as `${Prefix}/${Name}`]: Steps[Name];
};

/** The intersection of a union. */
export type All<Union> = (Union extends unknown ? (part: Union) => void : never) extends (all: infer Every) => void
  ? Every
  : never;
