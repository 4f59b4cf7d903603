import type { PayloadArguments } from '../task/payload-arguments.js';
import type { TaskDefinition } from '../task/definition.js';
import type { Jsonify } from '../task/jsonify.js';
import { InvalidWorkflowError } from '../errors.js';
import type { All, Prefixed, StepOptions } from './types.js';
import { Workflow, workflow } from './workflow.js';

/** A step without a place in a graph: what {@link step} makes, for `chain` and `parallel`. */
export class LooseStep<Name extends string = string, Result = unknown> {
  /** Never set: it only carries the type. */
  declare readonly __result?: Result;

  constructor(
    readonly name: Name,
    readonly task: string | TaskDefinition,
    readonly payload: unknown,
    readonly options: LooseOptions | undefined,
  ) {}
}

/** The shape says what it waits for. */
type LooseOptions = Omit<StepOptions, 'after'>;

/** A part of a shape: a step, or a workflow, which becomes a step of its own name. */
export type Part = LooseStep | Workflow<object>;

/** The workflow of a shape's parts. */
type ShapeOf<Name extends string, Parts extends readonly Part[]> = Workflow<
  All<StepsOf<Parts[number]>> & object,
  GroupsOf<Parts[number]>,
  Name
>;
type StepsOf<P> =
  P extends LooseStep<infer Name, infer Result>
    ? Record<Name, Result>
    : P extends Workflow<infer Steps, string, infer Name>
      ? Prefixed<Name, Steps>
      : never;
type GroupsOf<P> = P extends Workflow<object, infer Groups, infer Name> ? Name | `${Name}/${Groups}` : never;

/**
 * A step of a `chain` or `parallel`.
 *
 * @example step('pay', CapturePayment, { orderId }, { onFailure: 'run' })
 */
export function step<const Name extends string>(
  name: Name,
  type: string,
  payload?: unknown,
  options?: LooseOptions,
): LooseStep<Name>;
export function step<const Name extends string, P, R>(
  name: Name,
  task: TaskDefinition<P, R>,
  ...rest: PayloadArguments<P, LooseOptions>
): LooseStep<Name, Jsonify<R>>;
export function step(name: string, task: string | TaskDefinition, payload?: unknown, options?: object): LooseStep {
  return new LooseStep(name, task, payload, options);
}

/**
 * A workflow whose parts run one after the other. A part that is a workflow is a step of its name:
 * the part after it waits for all its ends.
 *
 * @example
 * chain(
 *   'order:fulfil',
 *   step('pay', CapturePayment, { orderId }),
 *   parallel('papers', step('receipt', SendReceipt, { orderId }), step('invoice', RenderInvoice, { orderId })),
 *   step('close', CloseOrder, { orderId }, { onFailure: 'run' }),
 * );
 *
 * @throws InvalidWorkflowError when a name is taken or wrong, or an option is unknown
 */
export function chain<const Name extends string, Parts extends readonly Part[]>(
  name: Name,
  ...parts: Parts
): ShapeOf<Name, Parts> {
  let previous: string | undefined;
  const add = (flow: Workflow, part: Part): Workflow => {
    const after = previous;
    previous = part.name;
    return addPart(flow, part, after);
  };
  return shapeOf(name, parts, add);
}

/**
 * A workflow whose parts run at the same time. As a part or a step of another workflow it may have none: what comes after it then waits
 * for what it waits for.
 *
 * @example
 * parallel('papers', step('receipt', SendReceipt, { orderId }), step('invoice', RenderInvoice, { orderId }));
 * parallel('pack', ...items.map((item) => step(`item-${item.sku}`, Pack, item)));
 *
 * @throws InvalidWorkflowError when a name is taken or wrong, or an option is unknown
 */
export function parallel<const Name extends string, Parts extends readonly Part[]>(
  name: Name,
  ...parts: Parts
): ShapeOf<Name, Parts> {
  return shapeOf(name, parts, (flow, part) => addPart(flow, part, undefined));
}

function shapeOf<Name extends string, Parts extends readonly Part[]>(
  name: Name,
  parts: Parts,
  add: (flow: Workflow, part: Part) => Workflow,
): ShapeOf<Name, Parts> {
  const empty: Workflow = parts.length === 0 ? Workflow.withoutParts(name) : workflow(name);
  return parts.reduce<Workflow>(add, empty) as unknown as ShapeOf<Name, Parts>;
}

function addPart(flow: Workflow, part: Part, after: string | undefined): Workflow {
  if (part instanceof Workflow) return flow.add(part.name, part, { after });
  if (!(part instanceof LooseStep)) {
    throw new InvalidWorkflowError(`a part of workflow "${flow.name}" must be a step(…) or a workflow`);
  }
  const { name, task, payload, options } = part;
  if (options !== undefined && 'after' in options) {
    throw new InvalidWorkflowError(
      `step "${name}" of workflow "${flow.name}" cannot say what it is after: its shape does`,
    );
  }
  return flow.add(name, task as TaskDefinition, payload, { ...options, after });
}
