import type { AsynqEvents } from '../../events/events.js';
import type { TaskContexts } from '../../task/contexts.js';
import type { StepsDeps } from './steps-deps.js';
import type { Results } from './results.js';
import type { NotesDeps } from './task-notes.js';

/** What handlers reach through their context. */
export interface AttemptServices {
  readonly results: Results;
  readonly steps: Omit<StepsDeps, 'observer'>;
  readonly events: AsynqEvents;
  readonly notes: NotesDeps;
  /** `undefined`: a server without a client. */
  readonly contexts: TaskContexts | undefined;
}
