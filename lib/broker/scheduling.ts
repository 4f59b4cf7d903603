import type { SchedulerEnqueueEvent, SchedulerEntry } from '../wire/message.js';
import type { EnqueueRequest, EnqueueStatus } from './enqueue-request.js';

/*
 * What periodic tasks need. However many processes have the same entry, each of its planned times is enqueued once: beside the
 * tasks of its queue stands, per entry, the last planned time anybody has dealt with (its mark). A firing moves the mark and creates
 * the task in one atomic step, and is refused when the mark has got there already.
 */

/** Seconds the history of an entry is kept after its last event. */
export const HISTORY_SECONDS = 90 * 86_400;
/** Events kept per entry, as in asynq. */
export const MOST_EVENTS = 1000;

/** How far the processes that have an entry have got with it, together. Times are Unix seconds. */
export interface ScheduleMark {
  /** Planned times up to here have been dealt with. Before the first: when the entry was opened. */
  readonly mark: number;
  /** The last planned time that was dealt with; `undefined` before the first. */
  readonly fired: number | undefined;
}

/** One planned time of an entry. */
export interface Firing {
  /** The entry: the same text in every process that has it. */
  readonly entry: string;
  /** Unix seconds. */
  readonly planned: number;
  /** Like no other firing's: tells a call that is sent again, since its reply was lost, from that of another process. */
  readonly attempt: string;
  /** The task to create. */
  readonly request: EnqueueRequest;
  /** Create none while the task the entry has created last is neither completed, archived nor gone. */
  readonly skipUnfinished: boolean;
  /** Seconds the mark is remembered from now on. */
  readonly keepFor: number;
}

/**
 * `past`: the mark was there already, nothing was written. In every other case the planned time is dealt with: `unfinished` without
 * a task, since the last one is unfinished; `duplicate` and `conflict` without, as for any task that is enqueued.
 */
export type FiringStatus = EnqueueStatus | 'past' | 'unfinished';

export interface FiringReply {
  readonly status: FiringStatus;
  /** The mark after the call, in Unix seconds. */
  readonly mark: number;
}

export interface SchedulingBroker {
  /**
   * Reads how far an entry has got. An entry nobody has opened, or opened last with another `spec`, begins now: times before count
   * as dealt with.
   *
   * @param keepFor seconds the mark is remembered from now on
   */
  openSchedule(queue: string, entry: string, spec: string, keepFor: number): Promise<ScheduleMark>;
  /** Deals with one planned time, unless that has been done. May be called again when it rejects: it is done once. */
  fire(queue: string, firing: Firing): Promise<FiringReply>;
  /** Publishes what a scheduler has for `ttl` seconds, in place of what it published before. @param schedulerId `<host>:<pid>:<uuid>` */
  writeSchedulerEntries(schedulerId: string, entries: readonly SchedulerEntry[], ttl: number): Promise<void>;
  clearSchedulerEntries(schedulerId: string): Promise<void>;
  /** Adds to the history of an entry, of which the newest {@link MOST_EVENTS} are kept for {@link HISTORY_SECONDS}. */
  recordEnqueueEvent(entryId: string, event: SchedulerEnqueueEvent): Promise<void>;
}
