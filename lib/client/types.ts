import type { TaskDefinition } from '../task/definition.js';
import type { TaskOptions } from '../task/options.js';

export type { PayloadArguments } from '../task/payload-arguments.js';

/** A task for `enqueueMany`, by its definition. */
export type DefinedItem<P = unknown> = { task: TaskDefinition<P>; options?: TaskOptions } & ([undefined] extends [P]
  ? { payload?: NoInfer<P> }
  : { payload: NoInfer<P> });

/** A task for `enqueueMany`, by its type name. */
export interface NamedItem {
  type: string;
  payload?: unknown;
  options?: TaskOptions;
}

/**
 * What a `@TaskAggregator` method returns. A queue among its options is ignored: it is that of the
 * group.
 */
export type AggregatedTask<P = unknown> = DefinedItem<P> | NamedItem;
