import type { OutboxCounts, OutboxSender, PoisonedPage, PoisonedRow } from '../transactions/enqueue-transactions.js';

export type {
  OutboxCounts,
  OutboxSender,
  PoisonedPage,
  PoisonedRow,
  RowNotices,
} from '../transactions/enqueue-transactions.js';

/** A task as it is written into the table. */
export interface NewRow {
  readonly queue: string;
  readonly taskId: string;
  readonly type: string;
  /** asynq's message. */
  readonly message: Buffer;
  /** JSON of what the message does not have: time, lock, links, policy for repeats. */
  readonly details: string;
  /** Only the ordered sender takes it, in the order of the rows. Default false. */
  readonly ordered?: boolean;
}

/** A row that has not ended. */
export interface UnsentRow {
  readonly id: number;
  readonly queue: string;
  readonly taskId: string;
}

/** A row that a sender has taken. */
export interface TakenRow {
  readonly id: number;
  /** Grows within a sender. */
  readonly number: number;
  readonly queue: string;
  readonly message: Buffer;
  readonly details: string;
}

/**
 * `sent`: Redis has the task. `existing`: there was such a task already, and it has a policy for that. `replaced`: such a task has
 * got its payload and time. `refused`: Redis wants no such task: its lock is held, its id is taken, or what it was to wait for cannot be found.
 * `poisoned`: it cannot be read; somebody must look.
 */
export type EndState = 'sent' | 'existing' | 'replaced' | 'refused' | 'poisoned';

export interface EndedRow {
  readonly id: number;
  readonly state: EndState;
  /** Why it is no task of its own. */
  readonly error?: string;
}

/** A sender that this relay owns, with the rows that it had taken before. */
export interface OwnedSender {
  readonly id: string;
  /** The highest number that it has given to a row. Absent: that the database has lost numbers is not noticed. */
  readonly number?: number;
  /** In the order of their numbers. It is not known which of them Redis has. */
  readonly rows: readonly TakenRow[];
}

export interface ExchangeRequest {
  readonly sender: string;
  readonly owner: string;
  readonly ended: readonly EndedRow[];
  /** The most rows to take. */
  readonly take: number;
  /** Queues whose rows are left alone. */
  readonly except: readonly string[];
}

/**
 * The tables of an outbox in one database. Every method but `insert` is one transaction of its own, and may be
 * called by many processes at once. Times are of the database's clock.
 */
export interface OutboxStore {
  /** @throws InvalidOptionError when a table, a column or an index is missing */
  check(): Promise<void>;
  /**
   * Writes rows in a transaction of the application.
   *
   * @param tx what runs statements in it: see TransactionScope
   * @throws InvalidTaskError when `tx` is nothing that this store knows
   */
  insert(tx: unknown, rows: readonly NewRow[]): Promise<void>;
  /** Takes a sender that is the owner's, or whose owner is gone; else makes one. Its lease starts again. Never the ordered one. */
  takeSender(owner: string, lease: number): Promise<OwnedSender>;
  /** Takes the sender of ordered rows, of which the tables have one, unless another has it. No other database has one of the same id. */
  takeOrdered(owner: string, lease: number): Promise<OwnedSender | undefined>;
  /** Takes a sender whose owner is gone, if it has rows that are not ended. */
  takeOrphan(owner: string, lease: number): Promise<OwnedSender | undefined>;
  /**
   * Ends rows and takes new ones, in one step, if the owner has the sender still; its lease starts again. The ordered sender
   * takes ordered rows, all others take those that are not.
   *
   * @returns the rows; `undefined`: the sender is another's, and nothing was done
   */
  exchange(request: ExchangeRequest, lease: number): Promise<TakenRow[] | undefined>;
  /** Gives a sender back, so that the next relay can take it. */
  release(sender: string, owner: string): Promise<void>;
  /**
   * Deletes a sender, if it is the owner's, and makes its rows that have not ended new again. Called when Redis has numbers of it that the
   * database does not know; needed when senders have a `number`.
   */
  abandon?(sender: string, owner: string): Promise<void>;
  /**
   * The rows of these tasks that have not ended, whoever has them: a task that waits for one is sent after it. Absent: it is refused if it
   * comes first.
   */
  unsent?(taskIds: readonly string[]): Promise<readonly UnsentRow[]>;
  /** Whether there are rows to take, of those that are not ordered. */
  hasNew(except: readonly string[]): Promise<boolean>;
  /** Whether there are ordered rows that have not ended: to be taken, or of a relay that may be gone. */
  hasOrdered(): Promise<boolean>;
  counts(): Promise<OutboxCounts>;
  /** Removes rows that have ended and are older, at most `limit`, but for poisoned ones. Returns how many. @param age milliseconds */
  purge(age: number, limit: number): Promise<number>;
  /** The senders, owned ones first, and how many rows each has taken. */
  senders(): Promise<readonly OutboxSender[]>;
  /** Poisoned rows by their ids. */
  poisoned(page: PoisonedPage): Promise<readonly PoisonedRow[]>;
  /** Makes poisoned rows new again, as they were written, at most `limit`. Returns how many. @param ids default: the first ones */
  retryPoisoned(limit: number, ids?: readonly number[]): Promise<number>;
  /** Removes poisoned rows; their tasks are lost. Returns how many. */
  dropPoisoned(ids: readonly number[]): Promise<number>;
  /**
   * Has `work` called after the commit of a transaction that is named by hand, and not after a rollback.
   * Absent: the library does not tell of commits.
   *
   * @param tx as `insert` has it
   */
  afterCommit?(tx: unknown, work: () => void): void;
  /**
   * Calls back when rows are committed, by any process, until the connection is lost or the returned function
   * is called. Absent: the database has no notices.
   */
  listen?(onRows: () => void, onLost: () => void): Promise<() => Promise<void>>;
  /** Closes connections that the store has opened itself. Called last. */
  close?(): void;
}
