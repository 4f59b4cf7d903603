import type { Jsonify } from './jsonify.js';
import type { TaskOptions } from './options.js';
import type { PayloadArguments } from './payload-arguments.js';

/** The types of a definition: see TaskDefinition. */
interface Typed<P, R> {
  readonly type: string;
  readonly options: Readonly<TaskOptions>;
  readonly __types?: { readonly payload: P; readonly result: R };
}

/** A step that is added to a run, and what it waits for. */
export interface AddStepOptions {
  /** Names of steps of the run, the current one or others, ended or not. Default: none, it is ready at once. */
  after?: string | readonly string[];
  /** What it does when one of these failed. Default `cancel`. */
  onFailure?: 'cancel' | 'run' | 'wait';
  /** Its failure counts as done. Default false. */
  optional?: boolean;
  /** Options of its task, but for `taskId` and `group`. */
  options?: Omit<TaskOptions, 'taskId' | 'group'>;
}

/** The run of a workflow, as the task of one of its steps sees it. */
export interface WorkflowContext {
  /** The id of the run. */
  readonly id: string;
  /** The name of the workflow. */
  readonly name: string;
  /** The queue that keeps the run. */
  readonly queue: string;
  /** The name of the step that this task is. */
  readonly step: string;
  /**
   * What the handler of another step has returned, after a trip through JSON; it is kept until the
   * retention of the run is over. With the definition of that step it has its type.
   *
   * @throws InvalidWorkflowError when the run has no such step
   * @throws WorkflowStateError when the step has not succeeded
   * @throws WorkflowNotFoundError when the run was deleted
   */
  result<P, R>(step: string, task: Typed<P, R>): Promise<Jsonify<R>>;
  result(step: string): Promise<unknown>;
  /**
   * The results of several steps by name; steps that have none (yet) are left out.
   *
   * @param steps default: those that this step waits for
   * @throws InvalidWorkflowError when the run has no step of one of these names
   * @throws WorkflowNotFoundError when the run was deleted
   */
  results(steps?: readonly string[]): Promise<Readonly<Record<string, unknown>>>;
  /**
   * Adds a step to the run. Resolves to false when the run has a step of this name, type, `after`,
   * `onFailure` and `optional`, with whatever payload and options: so an attempt that is made again
   * may add it again.
   *
   * @example await task.workflow.add('refund', Refund, { orderId }, { after: 'close' })
   *
   * @throws InvalidWorkflowError when `after` names an unknown step or the new one itself, or another step
   * has the name
   * @throws InvalidTaskError when an option or the payload is wrong
   * @throws WorkflowStateError when the run is over
   * @throws WorkflowNotFoundError when the run was deleted
   */
  add(step: string, type: string, payload?: unknown, options?: AddStepOptions): Promise<boolean>;
  add<P, R>(step: string, task: Typed<P, R>, ...rest: PayloadArguments<P, AddStepOptions>): Promise<boolean>;
  /**
   * Ends the run, as WorkflowRun.cancel does, but leaves this task alone.
   *
   * @returns whether this call has ended it
   */
  cancel(reason?: string): Promise<boolean>;
}
