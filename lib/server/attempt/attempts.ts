import type { AsynqError } from '../../errors.js';
import type { ActiveTask } from './active-task.js';

/** The attempts of a server, as its deadlines, cancellations and leases see them. */
export interface Attempts {
  /** Every task whose lease this server holds: it runs, or it is finished and not yet settled. */
  held(): Iterable<ActiveTask>;
  /** Ends an attempt as a failure for a reason from outside. Its handler may still run. */
  fail(task: ActiveTask, reason: AsynqError): void;
  /** The lease is another server's: nothing may be written any more. */
  lose(task: ActiveTask): void;
}
