import type { Lease } from '../../broker/broker.js';
import type { CheckpointsRole, StepCallPreparer } from '../../broker/checkpoints.js';
import type { Caused } from '../../broker/links.js';
import type { Clock } from '../../clock.js';
import type { AsynqError } from '../../errors.js';
import type { TaskMessage } from '../../wire/message.js';
import type { StepObserver } from './step-observer.js';

/** What the steps of all handlers need. */
export interface StepsDeps {
  readonly checkpoints: Pick<CheckpointsRole, 'read' | 'write' | 'call'>;
  readonly clock: Clock;
  /** Bytes of a result. */
  readonly maxBytes: number;
  readonly relay: { carry(caused: Caused): void };
  /** `undefined`: a server without a client. */
  readonly calls: StepCallPreparer | undefined;
  /** Whether the server claims nothing any more: rows that are left are for another one. */
  readonly isStopping?: (() => boolean) | undefined;
  /** Learns of steps that are not answered from what is stored. */
  readonly observer?: StepObserver | undefined;
}

/** What steps see of the attempt that they belong to. */
export interface StepsAttempt {
  readonly lease: Lease;
  readonly message: Pick<TaskMessage, 'id' | 'type' | 'errorMsg' | 'lastFailedAt' | 'headers'>;
  /** Nothing is stored of its steps. */
  readonly isBare: boolean | undefined;
  /** Why the handler was asked to stop, if it was. */
  readonly aborted: AsynqError | undefined;
  /** It has its verdict, or the task is another server's. */
  readonly isOver: boolean;
  /** Asks the handler to stop. */
  abort?(reason: AsynqError): void;
  /** Read when a step waits for something that may take long. */
  readonly signal: AbortSignal;
}
