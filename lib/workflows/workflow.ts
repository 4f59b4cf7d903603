import type { TaskDefinition } from '../task/definition.js';
import type { Jsonify } from '../task/jsonify.js';
import type { PayloadArguments } from '../task/payload-arguments.js';
import type { AnyTask, MissingPayload, PayloadFor, ResultFor } from '../task/task-types.js';
import { type Step, toGraph } from './graph.js';
import { requireName } from './names.js';
import { checkRunOptions } from './run-options.js';
import { StepList } from './step-list.js';
import { toNested, toStep } from './steps.js';
import type { NestedOptions, Prefixed, RunOptions, StepOptions } from './types.js';

/** Something that may be a step: what `add` takes after its name. */
export type AnyStep = string | TaskDefinition | Workflow;

/**
 * A graph of tasks that is submitted as one. It never changes: `add` returns another workflow with
 * one more step.
 *
 * @typeParam Steps the types of results by name of step
 * @typeParam Groups the names of workflows that are steps
 */
export class Workflow<Steps extends object = object, Groups extends string = string, Name extends string = string> {
  /** Never set: it only carries the types. */
  declare readonly __steps?: Steps;
  private graph: readonly Step[] | undefined;

  private constructor(
    readonly name: Name,
    /** The options of its runs. */
    readonly options: Readonly<RunOptions>,
    private readonly list: StepList,
    private readonly isShape = false,
  ) {}

  static create<Name extends string>(name: Name, options: RunOptions): Workflow<Record<never, never>, never, Name> {
    requireName(name, 'name of a workflow');
    return new Workflow(name, checkRunOptions(options, `workflow "${name}"`), new StepList());
  }

  /** What `chain` and `parallel` make of no parts: only such a workflow may be a step of another without having any. */
  static withoutParts(name: string): Workflow {
    requireName(name, 'name of a workflow');
    return new Workflow(name, {}, new StepList(), true);
  }

  /**
   * Adds a step: a task by its definition or its type, or another workflow, whose steps become
   * `step/inner`. Names are checked at once; the graph is checked, and payloads are encoded, by
   * `start`, before anything is written.
   *
   * @example
   * workflow('order:fulfil')
   *   .add('pay', CapturePayment, { orderId })
   *   .add('receipt', SendReceipt, { orderId }, { after: 'pay' })
   *   .add('ship', shipping(orderId), { after: 'pay' })
   *   .add('close', CloseOrder, { orderId }, { after: ['receipt', 'ship'], onFailure: 'run' });
   *
   * @throws InvalidWorkflowError when a name is taken or wrong, or an option is unknown
   */
  add<const N extends string, S extends object, G extends string>(
    step: N,
    workflow: Workflow<S, G>,
    options?: NestedOptions<(keyof Steps & string) | Groups>,
  ): Workflow<Steps & Prefixed<N, S>, Groups | N | `${N}/${G}`, Name>;
  add<const N extends string, P>(step: N, task: TaskDefinition<P> & MissingPayload<P>): never;
  add<const N extends string, T extends AnyTask>(
    step: N,
    task: T,
    ...rest: PayloadArguments<PayloadFor<T>, StepOptions<(keyof Steps & string) | Groups>>
  ): Workflow<Steps & Record<N, Jsonify<ResultFor<T>>>, Groups, Name>;
  add(step: string, what: AnyStep, ...rest: unknown[]): Workflow {
    requireName(step, `name of a step of workflow "${this.name}"`);
    const label = `step "${step}" of workflow "${this.name}"`;
    const added =
      what instanceof Workflow
        ? toNested(step, what.isEmptyShape ? { steps: [], ends: what.ends } : what, rest[0], label)
        : { steps: [toStep(step, what, rest[0], rest[1], label)] };
    return new Workflow(this.name, this.options, this.list.with(added, label));
  }

  /**
   * Its steps with all they wait for, checked.
   *
   * @throws InvalidWorkflowError when it has no steps, more than 10,000 or more than 100,000 edges,
   * a step is after an unknown one, or there is a cycle
   */
  get steps(): readonly Step[] {
    this.graph ??= toGraph(this.name, this.list.steps, this.list.ends);
    return this.graph;
  }

  private get isEmptyShape(): boolean {
    return this.list.steps.length === 0 && (this.isShape || this.list.ends.size > 0);
  }

  /** The names of workflows that are steps, each with the steps at its end. */
  get ends(): ReadonlyMap<string, readonly string[]> {
    return this.list.ends;
  }
}

/**
 * Begins a workflow.
 *
 * @param name 1 to 100 letters, digits, or characters of `_ . : @ -`
 * @throws InvalidWorkflowError
 */
export const workflow = <const Name extends string>(
  name: Name,
  options: RunOptions = {},
): Workflow<Record<never, never>, never, Name> => Workflow.create(name, options);
