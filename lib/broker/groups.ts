import type { TaskMessage } from '../wire/message.js';
import type { Caused, LinkedRequest } from './links.js';

/*
 * Groups: tasks that wait to become one. An aggregator claims a set of a group's tasks, reads it,
 * makes a task of it, and creates that task and deletes the set in one step. A set whose deadline
 * has passed goes back to its group.
 */

/** How long a claimed set may take until its tasks go back to their group (asynq's value). */
export const AGGREGATION_SECONDS = 120;

/**
 * The maximal size of a set, also when no size is given. The script that creates the aggregated
 * task deletes the set with its tasks: 5,000 take Redis some 5 ms. A larger group becomes several
 * sets.
 */
export const MAX_SET_SIZE = 5_000;

/** When a group is due, as in asynq. */
export interface GroupPolicy {
  /** Seconds since the last task joined. */
  readonly gracePeriod: number;
  /** Seconds since the first task joined; 0 = no limit. */
  readonly maxDelay: number;
  /**
   * With this many tasks the group is due at once; also the maximal size of a set. 0: MAX_SET_SIZE,
   * and no size makes it due.
   */
  readonly maxSize: number;
}

/** The policy of a group; `undefined`: the group is ignored. */
export type PolicyOf = (group: string) => GroupPolicy | undefined;

/** Tasks claimed from a group. Nobody else sees them until `deadline`. */
export interface ClaimedSet {
  readonly queue: string;
  readonly group: string;
  /** The full name of the set's key. */
  readonly key: string;
  /** Unix seconds. Proves the claim: reclaiming the set changes or removes it. */
  readonly deadline: number;
}

export interface ClaimReply {
  readonly sets: ClaimedSet[];
  /**
   * When the next group is due, in Unix seconds; `undefined` when none waits, now when more may be
   * due than were claimed.
   */
  readonly nextDue: number | undefined;
}

/**
 * What a store remembers of the groups of a queue for one caller that comes again and again with the same policies, so that it need
 * not look at all of them each time. It finds the same as without.
 */
export interface GroupsWatch {
  close(): Promise<void>;
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

/**
 * `lost`: the set is no longer ours. `duplicate` and `conflict` as in an enqueue. Only `finished`
 * wrote anything.
 */
export type FinishStatus = 'finished' | 'lost' | 'duplicate' | 'conflict';

/** The parcels are those of a task with links. */
export interface FinishReply extends Partial<Caused> {
  readonly status: FinishStatus;
}

export interface GroupsRole {
  /**
   * Claims up to `limit` sets of due groups until now + AGGREGATION_SECONDS; 0 only reads when the
   * next is due. A call claims one set per group.
   *
   * @param watch one of this queue, with which every call has the same policies
   */
  claimDueSets(queue: string, policyOf: PolicyOf, limit: number, watch?: GroupsWatch): Promise<ClaimReply>;
  /** For the calls of one who claims sets again and again. To be closed. */
  watchGroups(queue: string): GroupsWatch;
  /**
   * Claims sets for a server that helps others: only while at least `busy` sets of the queue are claimed, and it may come to a part of
   * the groups only. The next call goes on from there.
   */
  helpToClaim(queue: string, policyOf: PolicyOf, limit: number, busy: number): Promise<ClaimedSet[]>;
  /** The tasks of a claimed set. Dangling ids are left out. */
  readSet(set: ClaimedSet): Promise<AggregationSet>;
  /**
   * Archives damaged members of a claimed set as they are, so that the others can be aggregated.
   * Returns how many.
   */
  archiveDamagedMembers(set: ClaimedSet, ids: readonly string[]): Promise<number>;
  /**
   * Creates the task (in the state that the request leads to) and deletes the set with its tasks
   * and their unique locks, in one atomic step, if the set is still ours. Without a request it only
   * deletes.
   */
  finishSet(set: AggregationSet, request: LinkedRequest | undefined): Promise<FinishReply>;
  /**
   * Puts the tasks of sets whose deadline has passed back into their groups, with their old times.
   * Returns how many.
   */
  reclaimStaleSets(queue: string): Promise<number>;
  /**
   * Lists groups with tasks that are not listed (a Go server may leave them so), and removes the
   * names of empty ones. Scans every key of the Redis node: not often.
   */
  repairGroups(queue: string): Promise<{ listed: number; removed: number }>;
  /**
   * Lists groups that scheduled tasks have joined: a Go server that forwards them does not list
   * their group. `forward` does this too; this is for processes that only enqueue. Skips due tasks
   * that nobody has forwarded yet.
   *
   * @returns Unix seconds when the next such task joins its group; `undefined` when none is left
   */
  listDelayedGroups(queue: string): Promise<number | undefined>;
  /**
   * Some groups whose last task joined at or before their cutoff: groups that nobody aggregates.
   * Checks about a hundred groups with a cutoff, and about a thousand names to find them.
   *
   * @param cutoffOf Unix seconds; `undefined`: the group is ignored
   */
  listOverdueGroups(queue: string, cutoffOf: (group: string) => number | undefined): Promise<string[]>;
}
