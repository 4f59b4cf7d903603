import type { TaskPlace } from '../broker/task-place.js';
import type { ResultOptions } from '../results/options.js';
import type { Acknowledged } from '../task/acknowledge.js';
import type { TaskDefinition } from '../task/definition.js';
import type { FairnessOfCall } from '../task/fairness.js';
import type { CallLinks } from '../task/links.js';
import type { TaskOptions } from '../task/options.js';

export type { PayloadArguments } from '../task/payload-arguments.js';
export type { AnyTask, MissingPayload, PayloadFor, ResultFor } from '../task/task-types.js';

/** Options of an enqueue call: those of the task, and what it waits for. */
export type EnqueueOptions<P> = TaskOptions & CallLinks<P> & Acknowledged & FairnessOfCall;

/**
 * Options of `call`: those of an enqueue, but `timeout` is how long the caller waits. How long an attempt may take is said by the definition.
 */
export type ResultCallOptions<P> = Omit<EnqueueOptions<P>, 'timeout' | 'group'> & ResultOptions;

/** A task by its queue and id; `R` is the type of its result, where a TaskInfo knows it. */
export interface TaskWithResult<R = unknown> extends TaskPlace {
  readonly __types?: { readonly result: R };
}

/** Options of `enqueueMany` besides those of the tasks. */
export interface EnqueueManyOptions<Infos extends boolean = boolean> {
  /**
   * Whether a result has the `TaskInfo` of its task, which holds the payload. `false`: results only say `ok`, or have an
   * error, and the memory of a call does not grow with the payloads. Default `true`.
   */
  readonly infos?: Infos;
}

/** A task for `enqueueMany`, by its definition. */
export type DefinedItem<P = unknown, Options = EnqueueOptions<NoInfer<P>>> = {
  task: TaskDefinition<P>;
  options?: Options;
} & ([undefined] extends [P] ? { payload?: NoInfer<P> } : { payload: NoInfer<P> });

/** A task for `enqueueMany`, by its type name. */
export interface NamedItem<Options = EnqueueOptions<unknown>> {
  type: string;
  payload?: unknown;
  options?: Options;
}

/**
 * What a `@TaskAggregator` method returns. A queue among its options is ignored: it is that of the
 * group. It waits for others, and is remembered, as its definition says; options like `after` are refused.
 */
export type AggregatedTask<P = unknown> = DefinedItem<P, TaskOptions> | NamedItem<TaskOptions>;
