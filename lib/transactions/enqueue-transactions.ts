import type { PreparedTask } from '../enqueue/prepared-task.js';
import type { Transactions, TransactionScope } from './transactions.js';

/** Stores tasks in the database of a transaction. */
export interface OutboxWriter {
  /** Resolves when the rows are written; they are there when the transaction commits. */
  write(scope: TransactionScope, tasks: readonly PreparedTask[]): Promise<void>;
}

/** What a client asks before it enqueues. Modules fill it while the application starts. */
export interface EnqueueTransactions {
  /** As {@link Transactions.current}. Default: there are none. */
  current?: Transactions['current'] | undefined;
  /** Default: tasks are held in this process, and sent after the commit. */
  outbox?: OutboxWriter | undefined;
}
