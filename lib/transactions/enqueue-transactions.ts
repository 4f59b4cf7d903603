import type { PreparedTask } from '../enqueue/prepared-task.js';
import type { Transactions, TransactionScope } from './transactions.js';

/** The rows of an outbox that have not ended, or are poisoned. */
export interface OutboxCounts {
  /** Rows that no relay has taken. */
  readonly fresh: number;
  /** Rows that a relay has taken, and not ended. */
  readonly taken: number;
  readonly poisoned: number;
  /** Milliseconds since the oldest row was written that is not ended; 0 when there is none. */
  readonly oldest: number;
}

/** Stores tasks in the database of a transaction. */
export interface OutboxWriter {
  /** Resolves when the rows are written; they are there when the transaction commits. */
  write(scope: TransactionScope, tasks: readonly PreparedTask[]): Promise<void>;
  /** Rejects when the database does not answer. */
  counts(): Promise<OutboxCounts>;
}

/** What a client asks before it enqueues. Modules fill it while the application starts. */
export interface EnqueueTransactions {
  /** As {@link Transactions.current}. Default: there are none. */
  current?: Transactions['current'] | undefined;
  /** Default: tasks are held in this process, and sent after the commit. */
  outbox?: OutboxWriter | undefined;
  /** Called with tasks that are held in this process. Default: nobody is. */
  onHold?: ((scope: TransactionScope, tasks: readonly PreparedTask[]) => void) | undefined;
}
