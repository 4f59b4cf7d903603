import type { Broker } from '../broker/broker.js';
import type { LockPage, StoredLock } from '../broker/uniqueness.js';
import { InvalidOptionError } from '../errors.js';
import { rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';
import { toDate } from '../clock.js';
import { Keyspace } from '../wire/keys.js';
import type { TaskState } from '../wire/states.js';
import { requireQueue } from './known-queue.js';

/** A lock of a unique task. */
export interface LockInfo {
  /**
   * What it keeps out: the task type, then a hash of the payload as asynq writes it; or the business id and `key` or `last`; or names of fields, a
   * hash of their values, and `fields`. Colons between them; a colon in a business id is `%3A`, and a long one is hashed.
   */
  readonly name: string;
  /** The task that holds it. */
  readonly holder: {
    readonly id: string;
    /** `undefined`: it is over and was not kept. */
    readonly state: TaskState | undefined;
    /** `undefined`: it is not known, as the task is gone. */
    readonly type: string | undefined;
  };
  /** When it ends at the latest; `undefined` for a lock without an end, which something else has written. */
  readonly expiresAt: Date | undefined;
}

/** A page of locks. */
export interface LockList {
  readonly locks: readonly LockInfo[];
  /** Continues the list; `undefined` after the last page. */
  readonly cursor: string | undefined;
}

export interface LockListOptions {
  /** That of the page before. Default: the first page. */
  cursor?: string;
}

/** A lock, and the task that was seen to hold it: one of the list, say. */
export interface LockToRelease {
  readonly name: string;
  readonly holder: { readonly id: string };
}

type LocksBroker = Pick<Broker, 'uniqueness' | 'inspection' | 'clock' | 'keyPrefix'>;

/** @throws InvalidOptionError; QueueNotFoundError */
export async function listLocks(broker: LocksBroker, queue: string, options: LockListOptions = {}): Promise<LockList> {
  const { locks, cursor } = await storedLocks(broker, queue, options);
  return { locks: locks.map((lock) => viewLock(broker, queue, lock)), cursor };
}

/**
 * The same with the messages of the holders.
 *
 * @throws InvalidOptionError; QueueNotFoundError
 */
export async function storedLocks(broker: LocksBroker, queue: string, options: LockListOptions): Promise<LockPage> {
  requireObject(options, 'list options', InvalidOptionError);
  rejectUnknownKeys(options, ['cursor'], 'list option', InvalidOptionError);
  const { cursor } = options;
  if (cursor !== undefined && !/^\d+$/.test(requireNonBlank(cursor, 'cursor', InvalidOptionError))) {
    throw new InvalidOptionError(`cursor "${cursor}" is not one of a list of locks; leave it out to begin`);
  }
  await requireQueue(broker.inspection, queue);
  return broker.uniqueness.list(queue, cursor);
}

/**
 * Frees a lock that is still held by the task that was seen to hold it.
 *
 * @throws InvalidOptionError; QueueNotFoundError
 */
export async function releaseLock(broker: LocksBroker, queue: string, seen: LockToRelease): Promise<boolean> {
  requireObject(seen, 'lock', InvalidOptionError);
  requireObject(seen.holder, 'holder of the lock', InvalidOptionError);
  const name = requireNonBlank(seen.name, 'name of the lock', InvalidOptionError);
  const id = requireNonBlank(seen.holder.id, 'ID of the holder', InvalidOptionError);
  await requireQueue(broker.inspection, queue);
  return broker.uniqueness.release(queue, new Keyspace(broker.keyPrefix).queue(queue).lockPrefix + name, id);
}

/** A lock as users see it. */
export const viewLock = (
  { clock, keyPrefix }: Pick<Broker, 'clock' | 'keyPrefix'>,
  queue: string,
  { lock, owner, expiresIn }: StoredLock,
): LockInfo => ({
  name: lock.slice(new Keyspace(keyPrefix).queue(queue).lockPrefix.length),
  holder: { id: owner.id, state: owner.state, type: owner.message?.type },
  expiresAt: expiresIn === undefined ? undefined : toDate(clock.now() + expiresIn),
});
