import type { Broker } from '../broker/broker.js';
import type { StoredLock } from '../broker/uniqueness.js';
import { InvalidOptionError } from '../errors.js';
import { rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';
import { toDate } from '../clock.js';
import { Keyspace } from '../wire/keys.js';
import type { TaskState } from '../wire/states.js';
import { requireQueue } from './known-queue.js';

/** A lock of a unique task. */
export interface LockInfo {
  /**
   * What it keeps out: the task type, then a hash of the payload as asynq writes it; or `key:` or `last:` and the business id; or `fields:`, the names
   * of the fields, and a hash of their values.
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

/** @throws InvalidOptionError; QueueNotFoundError */
export async function listLocks(
  broker: Pick<Broker, 'uniqueness' | 'inspection' | 'clock' | 'keyPrefix'>,
  queue: string,
  options: LockListOptions = {},
): Promise<LockList> {
  requireObject(options, 'list options', InvalidOptionError);
  rejectUnknownKeys(options, ['cursor'], 'list option', InvalidOptionError);
  const { cursor } = options;
  if (cursor !== undefined && !/^\d+$/.test(requireNonBlank(cursor, 'cursor', InvalidOptionError))) {
    throw new InvalidOptionError(`cursor "${cursor}" is not one of a list of locks; leave it out to begin`);
  }
  await requireQueue(broker.inspection, queue);
  const page = await broker.uniqueness.list(queue, cursor);
  const start = new Keyspace(broker.keyPrefix).queue(queue).lockPrefix.length;
  return { locks: page.locks.map((lock) => view(lock, start, broker.clock.now())), cursor: page.cursor };
}

const view = ({ lock, owner, expiresIn }: StoredLock, start: number, now: number): LockInfo => ({
  name: lock.slice(start),
  holder: { id: owner.id, state: owner.state, type: owner.message?.type },
  expiresAt: expiresIn === undefined ? undefined : toDate(now + expiresIn),
});
