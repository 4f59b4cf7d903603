import { mapInTurns } from '../../../async.js';
import type { StoredLock } from '../../../broker/uniqueness.js';
import { storedLocks, viewLock } from '../../../inspector/locks.js';
import { requireNonBlank } from '../../../validation.js';
import { LOCK_KINDS, type LockName, readLockName } from '../../../wire/lock-names.js';
import { TASK_STATES } from '../../../wire/states.js';
import type { Dashboard } from '../../dashboard.js';
import type { Subject } from '../../payload/presenter.js';
import { ApiError, BadRequest } from '../api-error.js';
import { given } from '../query.js';
import type { ApiRequest, QueryParameter, Route } from '../route.js';
import { choice, flag, listOf, oneOf, orNull, ref, shape, text, time } from '../schema.js';
import { timeOrNull } from '../shapes/times.js';

const CURSOR: QueryParameter = { name: 'cursor', description: 'the next_cursor of the page before' };
const COMPARED = ['payload', ...LOCK_KINDS] as const;

export const lockSchemas = {
  Lock: shape({
    name: orNull(text('frees it by `:release_lock`; null when `redacted`, and when the lock is of an unknown kind')),
    type: orNull(text('of the tasks that it is about; null when the holder is gone and the name does not show it')),
    by: orNull(oneOf(COMPARED, 'what is compared; `last`: the key, and it only says which task is the last')),
    value: orNull(
      text(
        'a hash of the payload, the key, or names of fields and a hash; null when `redacted`, and where `by` is null',
      ),
    ),
    redacted: flag('a part of the payload of the holder is hidden, or may be: the value could be made of it'),
    task_id: text('of the holder'),
    state: orNull(oneOf(TASK_STATES, 'of the holder; null: it is over and was not kept')),
    expires_at: orNull(time('when it ends at the latest; null: something else has written it without an end')),
  }),
};

interface Seen {
  readonly read: LockName | undefined;
  /** A part of the payload that the name is made of is hidden, or may be. */
  readonly redacted: boolean;
  /** Its name may be shown: it is of the type of its holder, and nothing is hidden. */
  readonly named: boolean;
}

/**
 * The name of a lock holds a key, or a hash that can be guessed: both are made of the payload of the holder.
 *
 * @param holder `undefined`: it is gone
 */
function see({ presenter }: Dashboard, queue: string, name: string, holder: Subject | undefined): Seen {
  const found = readLockName(name);
  const read = holder && holder.type !== found?.type ? undefined : found;
  const redacted = holder
    ? presenter.hidesBytes(holder, 'payload')
    : read !== undefined && presenter.mayHidePayload({ type: read.type, queue });
  return { read, redacted, named: !redacted && read !== undefined };
}

function show(dashboard: Dashboard, queue: string, lock: StoredLock) {
  const { name, holder, expiresAt } = viewLock(dashboard.broker, queue, lock);
  const { message } = lock.owner;
  const { read, redacted, named } = see(dashboard, queue, name, message && { ...message, queue });
  return {
    name: named ? name : null,
    type: holder.type ?? read?.type ?? null,
    by: read?.by ?? null,
    value: redacted ? null : (read?.value ?? null),
    redacted,
    task_id: holder.id,
    state: holder.state ?? null,
    expires_at: timeOrNull(expiresAt),
  };
}

async function list(dashboard: Dashboard, { params, query }: ApiRequest) {
  const queue = params.queue!;
  const { locks, cursor } = await storedLocks(dashboard.broker, queue, { cursor: given(query, 'cursor') });
  return { locks: await mapInTurns(locks, (lock) => show(dashboard, queue, lock)), next_cursor: cursor ?? null };
}

/**
 * Whether it is refused depends on the holder alone, so that guesses of hidden names find nothing.
 *
 * @throws ApiError; QueueNotFoundError
 */
async function release(dashboard: Dashboard, { params, body }: ApiRequest): Promise<void> {
  const [queue, id] = [params.queue!, params.id!];
  const name = requireNonBlank((body as { name: string }).name, 'name', BadRequest);
  await dashboard.requireQueue(queue);
  const holder = await dashboard.inspector.getTaskInfo(queue, id);
  if (!see(dashboard, queue, name, holder).named) {
    const why = holder ? 'is redacted, or of another type than this lock' : 'is gone, and its locks may be redacted';
    throw new ApiError(
      'FORBIDDEN',
      `task "${id}" ${why}; reload the list. A lock that is not shown is freed by the inspector or by nestjs-asynq lock release`,
    );
  }
  if (await dashboard.inspector.releaseLock(queue, { name, holder: { id } })) return;
  throw new ApiError('ELSEWHERE', `task "${id}" does not hold this lock now, so nothing is freed; reload the list`);
}

export const lockRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'queues/{queue}/locks',
    summary: 'The locks of unique tasks, with their holders. Pages may be empty, and a lock may come twice',
    query: [CURSOR],
    reply: shape({ locks: listOf(ref('Lock')), next_cursor: orNull(text('null: this is the last page')) }),
    handle: list,
  },
  {
    method: 'POST',
    path: 'queues/{queue}/tasks/{id}:release_lock',
    summary: 'Free a lock, if this task holds it. The task may be over, and stays as it is',
    role: 'destroy',
    body: choice({ name: text('as the list of locks has it') }, ['name']),
    handle: release,
  },
];
