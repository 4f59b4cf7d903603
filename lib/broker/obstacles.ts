import type { StartLimit } from './limiting.js';
import type { ServerInfo } from '../wire/message.js';
import type { PublishedServer } from './inspection.js';
import type { ServerProfile } from './server-profile.js';

/*
 * What may keep a task from running, as far as the store knows. These calls only read, and each does a bounded amount of work.
 */

/** More tasks than this are not counted: to search the list takes Redis about a millisecond per 10,000. */
export const MAX_COUNTED_AHEAD = 20_000;
/** The most holders of tokens that one call returns. */
export const MAX_HOLDERS = 20;

/** Where a task is in its queue. */
export interface TaskPosition {
  readonly paused: boolean;
  readonly pending: number;
  readonly active: number;
  /** How many pending tasks are claimed before it; `undefined` when it is not pending, or when these are more than {@link MAX_COUNTED_AHEAD}. */
  readonly ahead: number | undefined;
  /** When the lease of an active task ends, in Unix seconds; `undefined` without one. */
  readonly leaseEnd: number | undefined;
  /**
   * The waitlist in which it is held, and how many there are before it; without a name, an older version has put it there.
   */
  readonly waitlist: { readonly name: string | undefined; readonly ahead: number } | undefined;
}

/** A server, with what only ours publish. */
export interface ObservedServer extends PublishedServer {
  /** `undefined` for a server that publishes none: Go's, or one of an older release. */
  readonly profile: ServerProfile | undefined;
  /**
   * By how many milliseconds its clock is ahead of that of the store (negative: behind), within a second. `undefined` when it is
   * not known.
   */
  readonly clockAhead: number | undefined;
}

export interface TokenHolder {
  /** As it was named when the token was acquired. */
  readonly holder: string;
  /** Unix seconds: the token is free after it. */
  readonly until: number;
}

export interface HeldTokens {
  readonly count: number;
  /** Up to {@link MAX_HOLDERS}, those first that are free first. */
  readonly holders: readonly TokenHolder[];
}

export interface StartsLeft {
  readonly left: number;
  /** Milliseconds until more may start; 0 while some may. */
  readonly moreIn: number;
}

export interface ObstaclesRole {
  position(queue: string, id: string): Promise<TaskPosition>;
  observeServers(): Promise<ObservedServer[]>;
  /** The queues that servers take tasks of now. One command; in a cluster one per server. */
  servedQueues(): Promise<ReadonlySet<string>>;
  /** Who has the tokens of a scope: see LimitingRole.acquireTokens. */
  heldTokens(scope: string): Promise<HeldTokens>;
  /** How many tasks of a scope may start now: see LimitingRole.takeStarts. */
  startsLeft(scope: string, limit: StartLimit): Promise<StartsLeft>;
  /** How many tasks of a queue may start now, by a limit of the queue. */
  queueStartsLeft(queue: string, limit: StartLimit): Promise<StartsLeft>;
}

/** The queues of the servers that take tasks. */
export const servedBy = (servers: readonly ServerInfo[]): ReadonlySet<string> =>
  new Set(servers.filter(({ status }) => status === 'active').flatMap(({ queues }) => Object.keys(queues)));
