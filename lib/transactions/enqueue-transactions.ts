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

/** A line of rows that one relay at a time owns. */
export interface OutboxSender {
  readonly id: string;
  /** The relay that has it; `undefined`: none has. */
  readonly owner: string | undefined;
  /** Milliseconds until its lease ends; 0 when it has. */
  readonly lease: number;
  /** Rows that are taken, and not ended. */
  readonly taken: number;
}

/** A row that could not be read. */
export interface PoisonedRow {
  readonly id: number;
  readonly queue: string;
  readonly taskId: string;
  readonly type: string;
  readonly error: string;
  /** Milliseconds since it was written. */
  readonly age: number;
}

export interface PoisonedPage {
  /** The id of the last row of the page before. Default: from the first one. */
  readonly after?: number | undefined;
  readonly limit: number;
}

/**
 * How the relay of this process learns of rows. `all`: it has notice of those of all processes. `own`: of those of its own, as
 * the database has no notices; else it polls. `lost`: as `own`, as the connection for notices is away, until it is back.
 */
export type RowNotices = 'all' | 'own' | 'lost';

/** Stores tasks in the database of a transaction, and shows what became of them. */
export interface OutboxWriter {
  /** Resolves when the rows are written; they are there when the transaction commits. */
  write(scope: TransactionScope, tasks: readonly PreparedTask[]): Promise<void>;
  /** `undefined`: this process has no relay. */
  readonly notices?: RowNotices | undefined;
  /** Rejects when the database does not answer. */
  counts(): Promise<OutboxCounts>;
  senders(): Promise<readonly OutboxSender[]>;
  poisoned(page: PoisonedPage): Promise<readonly PoisonedRow[]>;
  /** Has poisoned rows tried once more. Resolves with how many. @param ids default: all */
  retryPoisoned(ids?: readonly number[]): Promise<number>;
  /** Deletes poisoned rows with their tasks. Resolves with how many. */
  dropPoisoned(ids: readonly number[]): Promise<number>;
}

/** What a client asks before it enqueues. Modules fill it while the application starts. */
export interface EnqueueTransactions {
  /** As {@link Transactions.current}. Default: there are none. */
  current?: Transactions['current'] | undefined;
  /** Default: tasks are held in this process, and sent after the commit. */
  outbox?: OutboxWriter | undefined;
  /** Called before tasks are held in this process; it may refuse them by an error. Default: nobody is. */
  onHold?: ((scope: TransactionScope, tasks: readonly PreparedTask[]) => void) | undefined;
}
