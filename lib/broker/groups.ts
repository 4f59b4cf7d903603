import type { TaskMessage } from '../wire/message.js';
import type { EnqueueRequest } from './enqueue-request.js';

/*
 * Groups: tasks that wait to be made into one. Whoever aggregates claims a set of a group's tasks, reads it, makes a task of
 * it, and creates that task and deletes the set in one step. A set whose deadline has passed goes back to its group.
 */

/** Seconds a claimed set may take until its tasks go back to their group (asynq's). */
export const AGGREGATION_SECONDS = 120;

/**
 * The most tasks of one set, also where no size is given. A set is deleted in one script, with its tasks and in the step that
 * creates the aggregated one: 5,000 hold Redis for some 5 ms. A larger group becomes several sets.
 */
export const MAX_SET_SIZE = 5_000;

/** When a group is due, as asynq has it. */
export interface GroupPolicy {
  /** Seconds since the last task joined. */
  readonly gracePeriod: number;
  /** Seconds since the first task joined; 0 = no limit. */
  readonly maxDelay: number;
  /** Tasks that make the group due at once, and the most of one set; 0 = MAX_SET_SIZE, and no size makes it due. */
  readonly maxSize: number;
}

/** Tasks taken out of a group. Nobody else sees them until `deadline`. */
export interface ClaimedSet {
  readonly queue: string;
  readonly group: string;
  /** The full name of the set's key. */
  readonly key: string;
  /** Unix seconds. Proves the claim: taking the set back changes or removes it. */
  readonly deadline: number;
}

export interface ClaimReply {
  readonly sets: ClaimedSet[];
  /** Unix seconds when the next group is due, `undefined` when none waits. Now when more are due than were claimed. */
  readonly nextDue: number | undefined;
}

/** A member whose `msg` is not a task message of its id. */
export interface DamagedMember {
  readonly id: string;
  readonly error: Error;
}

export interface AggregationSet extends ClaimedSet {
  /** In the order in which they joined. */
  readonly tasks: TaskMessage[];
  readonly damaged: DamagedMember[];
}

/** `lost`: the set is no longer ours, nothing was written. Otherwise as of an enqueue: nothing is written unless `finished`. */
export type FinishStatus = 'finished' | 'lost' | 'duplicate' | 'conflict';

export interface GroupsRole {
  /**
   * Claims up to `limit` sets of groups that are due, until now + AGGREGATION_SECONDS; 0 only asks when the next is due. A group
   * yields one set per call.
   *
   * @param policyOf the policy of a group; `undefined` = it is left alone, and counts for nothing
   */
  claimDueSets(queue: string, policyOf: (group: string) => GroupPolicy | undefined, limit: number): Promise<ClaimReply>;
  /** The tasks of a claimed set. Ids without a message are left out. */
  readSet(set: ClaimedSet): Promise<AggregationSet>;
  /** Archives members of a claimed set as they are, so that the others can be aggregated; answers how many. */
  archiveDamaged(set: ClaimedSet, ids: readonly string[]): Promise<number>;
  /**
   * In one atomic step, if the set is still ours: creates the task (in whatever state the request leads to) and deletes the set
   * with all its tasks, releasing the unique locks they hold. Without a request it only deletes.
   */
  finishSet(set: AggregationSet, request: EnqueueRequest | undefined): Promise<FinishStatus>;
  /** Puts the tasks of sets whose deadline has passed back into their groups, at their old times; answers how many. */
  reclaimStaleSets(queue: string): Promise<number>;
  /**
   * Lists groups that hold tasks and are not listed (a Go server may leave them so), and removes names of empty ones. Looks at
   * every key of the Redis node: not often.
   */
  repairGroups(queue: string): Promise<{ listed: number; removed: number }>;
  /**
   * Lists groups that tasks have joined which were scheduled with a group: a Go server that moves them there leaves their group
   * unlisted. `forward` does it, too; this is for who only enqueues. Tasks that are due and that nobody has moved are left for later.
   *
   * @returns Unix seconds when the next such task joins its group; `undefined` when none is left
   */
  listDelayedGroups(queue: string): Promise<number | undefined>;
  /**
   * Some groups whose last task joined at or before their cutoff: what nobody aggregates. Looks at about a hundred that have one, and
   * among about a thousand for those.
   *
   * @param cutoffOf Unix seconds; `undefined` = the group is left alone
   */
  listOverdueGroups(queue: string, cutoffOf: (group: string) => number | undefined): Promise<string[]>;
}
