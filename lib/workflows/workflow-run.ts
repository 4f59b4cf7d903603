import type { RunState, RunSummary } from '../broker/workflows.js';
import { InvalidWorkflowError, WorkflowNotFoundError } from '../errors.js';
import { type DoneOptions, timeoutOfDone } from '../links/done-options.js';
import type { EndPoller } from '../links/end-poller.js';
import { describe } from '../validation.js';
import { workflowOf } from './names.js';
import { readOutcome, type WorkflowOutcome } from './outcome.js';
import { cancelRun, deleteRun, retryRun, type RunDeps } from './run-actions.js';

type Deps = RunDeps & { readonly poller: EndPoller<RunSummary> };

/**
 * One run of a workflow. It is only a handle: it may be made again, in any process, by
 * `AsynqClient.run`.
 *
 * @typeParam Steps the types of results by name of step
 */
export class WorkflowRun<Steps extends object = Record<string, unknown>> {
  /** The name of its workflow. */
  readonly name: string;
  // Not for console.log, which shows what the handle names.
  readonly #deps: Deps;

  /** Made by `AsynqClient.start` and `AsynqClient.run`. */
  constructor(
    deps: Deps,
    /** The queue that keeps it. */
    readonly queue: string,
    /** `<name of the workflow>/<id given to start>`; the task of a step is `<name>~<id given to start>~<step>`. */
    readonly id: string,
    /** Whether this call of `start` has started it; false when the id existed. */
    readonly created: boolean,
  ) {
    this.#deps = deps;
    this.name = workflowOf(id);
  }

  /** @throws WorkflowNotFoundError; BrokerUnavailableError */
  async state(): Promise<RunState> {
    const summary = await this.#deps.broker.workflows.summary(this.queue, this.id);
    if (!summary) throw new WorkflowNotFoundError(this.queue, this.id);
    return summary.state;
  }

  /**
   * What has become of the run and its steps so far; reads the whole graph and all results.
   *
   * @throws WorkflowNotFoundError; BrokerUnavailableError
   */
  async outcome(): Promise<WorkflowOutcome<Steps>> {
    const { workflows } = this.#deps.broker;
    const run = await workflows.run(this.queue, this.id);
    if (!run) throw new WorkflowNotFoundError(this.queue, this.id);
    return (await readOutcome(workflows, run)) as WorkflowOutcome<Steps>;
  }

  /**
   * Resolves when the run has ended, at once if it has: also when it failed or was cancelled. A
   * result is what its handler returned, after a trip through JSON.
   *
   * @throws WorkflowTimeoutError when it has not ended in time; it goes on
   * @throws WorkflowNotFoundError when it does not exist, or is deleted meanwhile
   * @throws ClosedError when the client is closed meanwhile
   */
  async done(options: DoneOptions = {}): Promise<WorkflowOutcome<Steps>> {
    const { clock } = this.#deps.broker;
    const until = clock.elapsed() + timeoutOfDone(options, 'outcome()');
    for (;;) {
      await this.#deps.poller.ended(this.queue, this.id, until - clock.elapsed());
      const outcome = await this.outcome();
      if (outcome.state !== 'running') return outcome; // else somebody has run a failed step again
    }
  }

  /**
   * Ends the run: steps that wait do not run, their tasks are deleted, and those that are active are
   * cancelled, as by `AsynqInspector.cancelProcessing`.
   *
   * @param reason for the handlers, and shown as the error of what did not run
   * @returns whether this call has ended it; false when it was over
   * @throws WorkflowNotFoundError; BrokerUnavailableError
   */
  async cancel(reason?: string): Promise<boolean> {
    if (reason !== undefined && typeof reason !== 'string') {
      throw new InvalidWorkflowError(`the reason to cancel a run must be a string, not ${describe(reason)}`);
    }
    return cancelRun(this.#deps, this.queue, this.id, reason);
  }

  /**
   * Runs the failed steps again; what was cancelled because of them waits for them again.
   *
   * @returns how many steps run again
   * @throws WorkflowStateError when no step has failed, or the run was cancelled
   * @throws WorkflowNotFoundError; BrokerUnavailableError
   */
  async retry(): Promise<number> {
    return retryRun(this.#deps, this.queue, this.id);
  }

  /**
   * Deletes the ended run, its results, and the archived tasks of its steps; tasks with a retention
   * of their own stay for that long.
   *
   * @throws WorkflowStateError while it is running
   * @throws WorkflowNotFoundError; BrokerUnavailableError
   */
  async delete(): Promise<void> {
    await deleteRun(this.#deps, this.queue, this.id);
  }

  /** What logs and JSON show of the handle. */
  toJSON(): object {
    const { id, name, queue, created } = this;
    return { id, name, queue, created };
  }
}
