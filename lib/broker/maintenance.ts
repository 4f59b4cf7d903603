import type { DamagedTask, LeasedTask } from './consumer.js';

export interface ExpiredLeases {
  readonly tasks: LeasedTask[];
  readonly damaged: DamagedTask[];
  /** How many dangling ids were removed. */
  readonly dangling: number;
  /** How many leases ended up to 15 s after the cutoff; 0 when there is nothing to recover. */
  readonly ending: number;
}

export interface MaintenanceRole {
  /**
   * Moves due tasks (score ≤ now) from `scheduled` and `retry` to `pending`, or to their group when
   * the hash names one, in chunks until none is due. `nextDue`: the lowest score left, in Unix
   * seconds.
   */
  forward(queue: string): Promise<{ moved: number; nextDue: number | undefined }>;
  /**
   * Of a fair queue: lets `most` tasks in `pending` be those whose turn it is, for servers that know no lines. Returns of how many it
   * was the turn before, and of how many more it is now.
   */
  fillTurns(queue: string, most: number): Promise<{ before: number; filled: number }>;
  /** Whether tasks of the queue wait in lines, though this process may not know that it is fair. */
  hasLines(queue: string): Promise<boolean>;
  /**
   * Of a fair queue: finds lines whose keys are lost, so that they would have no turn. Returns how many there were. Counts the tasks in
   * lines again, as Go's tools delete some without counting. With more than 5,000 keys the count is right when the queue comes to rest. Reads the
   * name of every key of the store, in small steps. Forgets some slots of tasks that are gone, as an operator may delete one that has had its turn.
   */
  repairLines(queue: string): Promise<number>;
  /**
   * Up to `limit` tasks whose lease ended at or before `cutoff` (Unix seconds), oldest first, to be
   * settled by their old lease.
   */
  listExpiredLeases(queue: string, cutoff: number, limit: number): Promise<ExpiredLeases>;
  /** Gives active ids without a lease one that ends at now + LEASE_SECONDS. Returns how many. */
  repairActive(queue: string): Promise<number>;
  /** Deletes up to `limit` completed tasks whose retention is over. Returns how many. */
  deleteExpiredCompleted(queue: string, limit: number): Promise<number>;
  /**
   * Deletes up to `limit` archived tasks that are beyond the limits of the queue (`Broker.archives`), by default
   * older than 90 days or not among the newest 9,999,
   * with their locks. Returns how many.
   */
  trimArchived(queue: string, limit: number): Promise<number>;
  /**
   * Deletes what Go servers have left that wrote a result when the task was gone: asynq does not check that. Nobody lists it, so
   * this reads the name of every key of the store, in small steps. Returns how many there were.
   */
  deleteLateResults(queue: string): Promise<number>;
}
