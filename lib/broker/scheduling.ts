import type { SchedulerEnqueueEvent, SchedulerEntry } from '../wire/message.js';
import type { EnqueueStatus } from './enqueue-request.js';
import type { Caused, LinkedRequest } from './links.js';

/*
 * Periodic tasks. Any number of processes may have the same entry, and each of its planned times is
 * enqueued once: beside the tasks of its queue, the store keeps per entry up to when planned times
 * have been dealt with (`handledUntil`; the field `mark` in Redis). A firing moves it and creates
 * the task in one atomic step, and is refused when the planned time has been dealt with already.
 */

/** Seconds the history of an entry is kept after its last event. */
export const HISTORY_SECONDS = 90 * 86_400;
/** Events kept per entry, as in asynq. */
export const MAX_ENQUEUE_EVENTS = 1000;

/** How far the processes that have an entry have got with it. Times are Unix seconds. */
export interface ScheduleProgress {
  /** Planned times up to here have been dealt with. Before the first: when the entry was opened. */
  readonly handledUntil: number;
  /** The last planned time that was dealt with while the entry was not paused; `undefined` before the first. */
  readonly lastFiredAt: number | undefined;
}

/** One planned time of an entry. */
export interface Firing {
  /** The entry: the same text in every process that has it. */
  readonly entry: string;
  /** Unix seconds. */
  readonly scheduledFor: number;
  /**
   * Unique per firing: distinguishes a call that is sent again, as its reply was lost, from one of
   * another process.
   */
  readonly attempt: string;
  /** The task to create. */
  readonly request: LinkedRequest;
  /** Create no task while the last one of the entry is neither completed, archived nor deleted. */
  readonly skipUnfinished: boolean;
  /** How many seconds from now the progress is remembered. */
  readonly keepFor: number;
}

/**
 * `past`: the planned time had been dealt with, nothing was written. In every other case it is now:
 * `unfinished` without a task, as the last one is unfinished; `paused` without one, as the entry is paused or was then; `duplicate` and `conflict` without
 * one, as for any task that is enqueued.
 */
export type FiringStatus = EnqueueStatus | 'past' | 'unfinished' | 'paused';

/** The parcels are those of a task with links. */
export interface FiringReply extends Partial<Caused> {
  readonly status: FiringStatus;
  /** As in {@link ScheduleProgress}, after the call. */
  readonly handledUntil: number;
  /** As in {@link ScheduleProgress}, after the call. */
  readonly lastFiredAt: number | undefined;
}

/** `same`: it was in that state already. `unknown`: no process has opened the entry. */
export type PauseStatus = 'changed' | 'same' | 'unknown';

/** The pause of an entry. */
export interface SchedulePause {
  /** Whether a process has opened the entry: only those can be paused. */
  readonly known: boolean;
  /** Since when it is paused, in Unix seconds; `undefined`: it is not. */
  readonly pausedAt: number | undefined;
}

export interface SchedulingRole {
  /**
   * Reads how far an entry has got. A new entry, or one that was last opened with another `spec`,
   * begins now: times before count as dealt with.
   *
   * @param keepFor how many seconds from now the progress is remembered
   */
  openSchedule(queue: string, entry: string, spec: string, keepFor: number): Promise<ScheduleProgress>;
  /**
   * Deals with one planned time, unless that is done. May be called again when it rejects: it is
   * done once.
   */
  fire(queue: string, firing: Firing): Promise<FiringReply>;
  /**
   * Pauses an entry for all processes: its planned times count as dealt with, without a task. The pause is forgotten with the progress of
   * the entry, and outlives a changed `spec`.
   */
  pauseSchedule(queue: string, entry: string): Promise<PauseStatus>;
  /** Ends the pause. Planned times up to now are not made up for. */
  resumeSchedule(queue: string, entry: string): Promise<PauseStatus>;
  readPause(queue: string, entry: string): Promise<SchedulePause>;
  /**
   * Publishes the entries of a scheduler for `ttl` seconds, in place of those before.
   *
   * @param schedulerId `<host>:<pid>:<uuid>`
   */
  writeSchedulerEntries(schedulerId: string, entries: readonly SchedulerEntry[], ttl: number): Promise<void>;
  clearSchedulerEntries(schedulerId: string): Promise<void>;
  /**
   * Adds to the history of an entry, of which the newest {@link MAX_ENQUEUE_EVENTS} are kept for
   * {@link HISTORY_SECONDS}.
   */
  recordEnqueueEvent(entryId: string, event: SchedulerEnqueueEvent): Promise<void>;
}
