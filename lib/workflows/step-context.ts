import type { StoredRun, StoredStep } from '../broker/workflows.js';
import type { Preparer } from '../enqueue/preparer.js';
import { InvalidWorkflowError, WorkflowNotFoundError, WorkflowStateError } from '../errors.js';
import { decodeResult } from '../task/codec.js';
import type { StepLink } from '../task/contexts.js';
import type { TaskDefinition } from '../task/definition.js';
import type { AddStepOptions, WorkflowContext } from '../task/workflow-context.js';
import type { EnqueueSpan, Tracing } from '../tracing/tracing.js';
import { nearest } from '../validation.js';
import { requireNoCycle, type Step } from './graph.js';
import { requireName, requireShort, SEPARATOR, workflowOf } from './names.js';
import { decodeResults, readResults } from './outcome.js';
import { toNewSteps } from './prepare.js';
import { cancelRun, type RunDeps } from './run-actions.js';
import { toStep } from './steps.js';

/** What the tasks of steps need to see their runs. */
export interface StepContextDeps extends RunDeps {
  readonly preparer: Preparer;
  readonly tracing: Tracing | undefined;
}

/** See WorkflowContext. */
export class StepContext implements WorkflowContext {
  constructor(
    private readonly deps: StepContextDeps,
    private readonly taskId: string,
    private readonly link: StepLink,
  ) {}

  get queue(): string {
    return this.link.to;
  }
  get id(): string {
    return this.link.run;
  }
  get name(): string {
    return workflowOf(this.id);
  }
  get step(): string {
    return this.link.step;
  }

  async result<R>(step: string): Promise<R> {
    const [bytes] = await this.deps.broker.workflows.results(this.queue, this.id, [step], this.link.since);
    if (bytes === undefined) this.requireSucceeded(await this.read(), step);
    return decodeResult(bytes) as R;
  }

  async results(steps?: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
    if (!steps) return this.resultsBefore();
    const results = await readResults(this.deps.broker.workflows, this.queue, this.id, steps, this.link.since);
    const without = steps.filter((name) => !results.has(name));
    if (without.length > 0) this.requireKnown(await this.read(), without);
    return Object.fromEntries(results);
  }

  private async resultsBefore(): Promise<Readonly<Record<string, unknown>>> {
    const results = await this.deps.broker.workflows.resultsBefore(this.link);
    if (!results) throw new WorkflowNotFoundError(this.queue, this.id);
    return decodeResults(results);
  }

  async add(
    name: string,
    task: string | Pick<TaskDefinition, 'type' | 'options'>,
    ...rest: unknown[]
  ): Promise<boolean> {
    const parts = typeof name === 'string' ? requireShort(name).split(SEPARATOR) : [name];
    for (const part of parts) requireName(part, `name of a step of run "${this.id}"`);
    const label = `step "${name}" of run "${this.id}"`;
    const step = toStep(name, task, rest[0], rest[1] as AddStepOptions | undefined, label);
    requireNoCycle([step], label);
    const span = this.deps.tracing?.startEnqueueMany(1, undefined);
    try {
      const added = await this.grow(step, span);
      span?.end();
      return added;
    } catch (error) {
      span?.end(error, 1);
      throw error;
    }
  }

  private async grow(step: Step, span: EnqueueSpan | undefined): Promise<boolean> {
    const { broker, preparer, relay } = this.deps;
    const steps = toNewSteps([step], { id: this.id, now: broker.clock.now(), preparer, span });
    const { status, ...caused } = await broker.workflows.grow(this.queue, this.id, steps);
    relay.carry(caused);
    if (status === 'added') return true;
    if (status === 'missing') throw new WorkflowNotFoundError(this.queue, this.id);
    return this.explainRefusal(await this.read(), step, steps[0]!.request.message.type);
  }

  async cancel(reason?: string): Promise<boolean> {
    return cancelRun(this.deps, this.queue, this.id, reason, this.taskId);
  }

  toJSON(): object {
    const { id, name, queue, step } = this;
    return { id, name, queue, step };
  }

  private async read(): Promise<StoredRun> {
    const run = await this.deps.broker.workflows.run(this.queue, this.id);
    if (!run) throw new WorkflowNotFoundError(this.queue, this.id);
    return run;
  }

  private requireKnown({ graph }: StoredRun, names: readonly string[]): void {
    const known = new Set(graph.map(({ name }) => name));
    const wrong = names.find((name) => !known.has(name));
    if (wrong !== undefined) throw this.unknown(graph, wrong, `has no step "${wrong}"`);
  }

  private requireSucceeded({ graph }: StoredRun, name: string): void {
    const step = graph.find((one) => one.name === name);
    if (!step) throw this.unknown(graph, name, `has no step "${name}"`);
    if (step.state === 'succeeded') return;
    throw new WorkflowStateError(
      `step "${name}" of run "${this.id}" has no result: it is ${step.state}; wait for it (after) before reading its result`,
    );
  }

  /** @returns false when the step was added before; throws otherwise */
  private explainRefusal({ graph, state }: StoredRun, step: Step, type: string): false {
    const taken = graph.find(({ name }) => name === step.name);
    if (taken && isSame(taken, step, type)) return false;
    if (taken) {
      throw new InvalidWorkflowError(
        `run "${this.id}" has another step "${step.name}", a task "${taken.type}"; give the new one a name of its own`,
      );
    }
    for (const other of step.after) {
      if (graph.some(({ name }) => name === other)) continue;
      throw this.unknown(graph, other, `has no step "${other}", which step "${step.name}" is after`);
    }
    throw new WorkflowStateError(`no step can be added to run "${this.id}": it is ${state}`);
  }

  private unknown(graph: readonly StoredStep[], name: string, what: string): InvalidWorkflowError {
    const near = nearest(
      name,
      graph.map((one) => one.name),
    );
    return new InvalidWorkflowError(`run "${this.id}" ${what}; ${near ? `did you mean "${near}"?` : 'check its name'}`);
  }
}

const isSame = (stored: StoredStep, { after, onFailure, optional }: Step, type: string): boolean =>
  stored.type === type &&
  stored.onFailure === onFailure &&
  stored.optional === optional &&
  stored.after.length === after.length &&
  after.every((name) => stored.after.includes(name));
