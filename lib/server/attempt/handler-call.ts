import type { StepRecords } from './step-records.js';
import type { StepWork } from './step-work.js';
import type { StepsAttempt, StepsDeps } from './steps-deps.js';

/** One call of a handler with steps, as the kinds of steps see it. */
export interface HandlerCall {
  readonly deps: StepsDeps;
  readonly attempt: StepsAttempt;
  readonly records: StepRecords;
  readonly work: StepWork;
  /** Names the task in messages. */
  readonly label: string;
}
