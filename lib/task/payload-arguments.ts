import type { TaskOptions } from './options.js';

/**
 * Payload and options of a definition's task; the payload is optional if its type allows
 * `undefined`.
 */
export type PayloadArguments<P, Options = TaskOptions> = [undefined] extends [P]
  ? [payload?: P, options?: Options]
  : [payload: P, options?: Options];
