import type { TaskContexts } from '../../task/contexts.js';
import type { Results } from './results.js';

/** What handlers reach through their context. */
export interface AttemptServices {
  readonly results: Results;
  /** `undefined`: a server without a client. */
  readonly contexts: TaskContexts | undefined;
}
