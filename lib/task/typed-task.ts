import type { TaskOptions } from './options.js';

/**
 * What a TaskDefinition is to those that only need its type, its defaults and the types of its
 * payload and its result.
 */
export interface TypedTask<P = unknown, R = unknown> {
  readonly type: string;
  /** The default options of its tasks. */
  readonly options: Readonly<TaskOptions>;
  /** Never set: it only carries the types. */
  readonly __types?: { readonly payload: P; readonly result: R };
}
