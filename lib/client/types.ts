import type { TaskDefinition } from '../task/definition.js';
import type { TaskInfo } from '../task/info.js';
import type { TaskOptions } from '../task/options.js';

/** Payload and options of a definition's task; the payload may be left out where its type allows `undefined`. */
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

/** What a `@TaskAggregator` method answers. The queue among its options is passed over: it is that of the group. */
export type AggregatedTask<P = unknown> = DefinedItem<P> | NamedItem;

/** What became of one task of `enqueueMany`. */
export type EnqueueResult =
  | { readonly ok: true; readonly info: TaskInfo; readonly error?: undefined }
  /** DuplicateTaskError, TaskIdConflictError, InvalidTaskError or BrokerUnavailableError. */
  | { readonly ok: false; readonly error: Error; readonly info?: undefined };
