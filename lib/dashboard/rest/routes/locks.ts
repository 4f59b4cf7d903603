import { mapInTurns } from '../../../async.js';
import type { StoredLock } from '../../../broker/uniqueness.js';
import { storedLocks, viewLock } from '../../../inspector/locks.js';
import { LOCK_KINDS, readLockName } from '../../../wire/lock-names.js';
import { TASK_STATES } from '../../../wire/states.js';
import type { Dashboard } from '../../dashboard.js';
import { given } from '../query.js';
import type { ApiRequest, QueryParameter, Route } from '../route.js';
import { flag, listOf, oneOf, orNull, ref, shape, text, time } from '../schema.js';
import { timeOrNull } from '../shapes/times.js';

const CURSOR: QueryParameter = { name: 'cursor', description: 'the next_cursor of the page before' };
const COMPARED = ['payload', ...LOCK_KINDS] as const;

export const lockSchemas = {
  Lock: shape({
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

/** The name of a lock holds a key, or a hash that can be guessed: both are made of the payload of the holder. */
function show(dashboard: Dashboard, queue: string, lock: StoredLock) {
  const { name, holder, expiresAt } = viewLock(dashboard.broker, queue, lock);
  const { presenter } = dashboard;
  const message = lock.owner.message;
  const read = readLockName(name);
  const found = message && message.type !== read?.type ? undefined : read;
  const redacted = message
    ? presenter.hidesBytes({ ...message, queue }, 'payload')
    : found !== undefined && presenter.mayHidePayload({ type: found.type, queue });
  return {
    type: holder.type ?? found?.type ?? null,
    by: found?.by ?? null,
    value: redacted ? null : (found?.value ?? null),
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

export const lockRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'queues/{queue}/locks',
    summary: 'The locks of unique tasks, with their holders. Pages may be empty, and a lock may come twice',
    query: [CURSOR],
    reply: shape({ locks: listOf(ref('Lock')), next_cursor: orNull(text('null: this is the last page')) }),
    handle: list,
  },
];
