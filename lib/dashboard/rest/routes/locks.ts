import { mapInTurns } from '../../../async.js';
import type { StoredLock } from '../../../broker/uniqueness.js';
import { storedLocks, viewLock } from '../../../inspector/locks.js';
import { TASK_STATES } from '../../../wire/states.js';
import type { Dashboard } from '../../dashboard.js';
import { given } from '../query.js';
import type { ApiRequest, QueryParameter, Route } from '../route.js';
import { flag, listOf, oneOf, orNull, ref, shape, text, time } from '../schema.js';
import { timeOrNull } from '../shapes/times.js';

const CURSOR: QueryParameter = { name: 'cursor', description: 'the next_cursor of the page before' };
const COMPARED = ['payload', 'key', 'last', 'fields'] as const;

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

interface LockName {
  readonly type: string;
  readonly by: (typeof COMPARED)[number];
  readonly value: string;
}

const HASH = /^(?:[\da-f]{32})?$/;
const MARK = /:(key|last|fields):/g;

/** What the name of a lock may mean. More than one when types or keys look like parts of a name. */
function readings(name: string): LockName[] {
  const found = [...name.matchAll(MARK)].map((mark): LockName => ({
    type: name.slice(0, mark.index),
    by: mark[1] as LockName['by'],
    value: name.slice(mark.index + mark[0].length),
  }));
  const colon = name.lastIndexOf(':');
  const hash = name.slice(colon + 1);
  return colon >= 0 && HASH.test(hash) ? [...found, { type: name.slice(0, colon), by: 'payload', value: hash }] : found;
}

/** The name of a lock holds a key, or a hash that can be guessed: both are made of the payload of the holder. */
function show(dashboard: Dashboard, queue: string, lock: StoredLock) {
  const { name, holder, expiresAt } = viewLock(dashboard.broker, queue, lock);
  const { presenter } = dashboard;
  const message = lock.owner.message;
  const all = readings(name);
  const found = message ? all.find(({ type }) => type === message.type) : all[0];
  const redacted = message
    ? presenter.hidesBytes({ ...message, queue }, 'payload')
    : all.some(({ type }) => presenter.mayHidePayload({ type, queue }));
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
