import type { TaskDefinition } from '../task/definition.js';
import type { TaskOptions } from '../task/options.js';

/**
 * Payload and options of a definition's task; the payload is optional if its type allows
 * `undefined`.
 */
export type PayloadArguments<P, Options = TaskOptions> = [undefined] extends [P]
  ? [payload?: P, options?: Options]
  : [payload: P, options?: Options];

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
