import type { OutboxSender, OutboxWriter, PoisonedRow } from '../../../transactions/enqueue-transactions.js';
import type { Dashboard } from '../../dashboard.js';
import { ApiError } from '../api-error.js';
import { positive, SIZE_PARAMETER, sizeOf } from '../query.js';
import type { ApiRequest, QueryParameter, Route } from '../route.js';
import { amount, count, listOf, orNull, ref, shape, text } from '../schema.js';

const AFTER_PARAMETER: QueryParameter = {
  name: 'after',
  description: 'the `next` of the page before',
  integer: true,
  canonical: (query) => positive(query, 'after'),
};

export const outboxSchemas = {
  OutboxSender: shape({
    id: text(),
    owner: orNull(text('the relay that has it; null: none')),
    lease_ms: amount('until another relay may take it'),
    taken: count('rows that are under way'),
  }),
  PoisonedRow: shape({
    row: count('its id in the table'),
    queue: text(),
    task_id: text(),
    type: text(),
    error: text('why it cannot be read'),
    age_ms: amount('since it was written'),
  }),
};

const REPLY = shape({
  fresh: count('rows that no relay has taken'),
  taken: count('rows that are under way'),
  poisoned: count('rows that cannot be read'),
  oldest_ms: amount('age of the oldest row that Redis does not have; 0: there is none'),
  senders: listOf(ref('OutboxSender')),
});

/** @throws ApiError when this process has none */
function outboxOf({ outbox }: Dashboard): OutboxWriter {
  if (outbox) return outbox;
  throw new ApiError('NOT_FOUND', 'the process of this console has no outbox for its connection');
}

/** @throws ApiError: a database that is away is no fault of the console */
async function asking<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (error) {
    throw new ApiError('UPSTREAM', `the database of the outbox: ${error instanceof Error ? error.message : error}`);
  }
}

async function overview(dashboard: Dashboard) {
  const outbox = outboxOf(dashboard);
  const [{ fresh, taken, poisoned, oldest }, senders] = await asking(Promise.all([outbox.counts(), outbox.senders()]));
  return { fresh, taken, poisoned, oldest_ms: oldest, senders: senders.map(showSender) };
}

const showSender = ({ id, owner, lease, taken }: OutboxSender) => ({
  id,
  owner: owner ?? null,
  lease_ms: lease,
  taken,
});

/** A page holds fewer than asked for where the sender of the request may not see all queues. */
async function poisoned(dashboard: Dashboard, { query, permissions }: ApiRequest) {
  const limit = sizeOf(query);
  const rows = await asking(outboxOf(dashboard).poisoned({ after: positive(query, 'after'), limit }));
  return {
    rows: rows.filter(({ queue }) => permissions.maySee(queue)).map((row) => showRow(dashboard, row)),
    next: rows.length < limit ? null : rows.at(-1)!.id,
  };
}

const showRow = ({ presenter }: Dashboard, { id, queue, taskId, type, error, age }: PoisonedRow) => ({
  row: id,
  queue,
  task_id: taskId,
  type,
  error: presenter.presentError({ type, queue, error }),
  age_ms: age,
});

/** @throws ApiError when no poisoned row has the id of the path, or the sender may not see its queue */
async function find(dashboard: Dashboard, { params, permissions }: ApiRequest): Promise<PoisonedRow> {
  const id = /^\d{1,15}$/.test(params.row!) ? Number(params.row) : 0;
  const [found] = id === 0 ? [] : await asking(outboxOf(dashboard).poisoned({ after: id - 1, limit: 1 }));
  if (found?.id === id && permissions.maySee(found.queue)) return found;
  throw new ApiError('NOT_FOUND', `no row "${params.row}" of the outbox is poisoned`);
}

const queueOf = async (dashboard: Dashboard, request: ApiRequest): Promise<string> =>
  (await find(dashboard, request)).queue;

export const outboxRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'outbox',
    summary: 'Rows of the outbox that Redis does not have, and the relays',
    reply: REPLY,
    handle: overview,
  },
  {
    method: 'GET',
    path: 'outbox/poisoned',
    summary: 'Rows of the outbox that cannot be read',
    scope: 'filtered',
    query: [SIZE_PARAMETER, AFTER_PARAMETER],
    reply: shape({ rows: listOf(ref('PoisonedRow')), next: orNull(count('null: this is the last page')) }),
    handle: poisoned,
  },
  {
    method: 'POST',
    path: 'outbox/poisoned/{row}:retry',
    summary: 'Have the relay try a poisoned row once more',
    scope: 'filtered',
    handle: async (dashboard, { params }) => {
      await asking(outboxOf(dashboard).retryPoisoned([Number(params.row)]));
    },
    queueOf,
  },
  {
    method: 'DELETE',
    path: 'outbox/poisoned/{row}',
    summary: 'Delete a poisoned row; its task is lost',
    scope: 'filtered',
    handle: async (dashboard, { params }) => {
      await asking(outboxOf(dashboard).dropPoisoned([Number(params.row)]));
    },
    queueOf,
  },
];
