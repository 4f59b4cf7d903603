import { BatchNotFoundError } from '../../../errors.js';
import type { BatchInfo } from '../../../task/batch.js';
import type { Dashboard } from '../../dashboard.js';
import type { Permissions } from '../../permissions.js';
import { given, PAGE_PARAMETERS, pageOf, sizeOf } from '../query.js';
import type { ApiRequest, QueryParameter, Route } from '../route.js';
import { count, listOf, oneOf, orNull, ref, shape, text, time } from '../schema.js';
import { timeOrNull } from '../shapes/times.js';

export const QUEUE_PARAMETER: QueryParameter = { name: 'queue', description: 'only those that live in this queue' };

export const batchSchemas = {
  Batch: shape({
    id: text(),
    queue: text('where it lives; its tasks may be in others'),
    name: text(),
    state: oneOf(['open', 'closed', 'succeeded', 'completed'], '`completed`: all have ended, and some have failed'),
    total: count('members added so far'),
    pending: count('members that have not ended'),
    succeeded: count(),
    failed: count(),
    failed_in: listOf(text('queue with members that have failed, of those that the sender may see')),
    opened_at: time(),
    ended_at: orNull(time()),
  }),
};

const showBatch = ({ openedAt, endedAt, ...batch }: BatchInfo, permissions: Permissions) => ({
  id: batch.id,
  queue: batch.queue,
  name: batch.name,
  state: batch.state,
  total: batch.total,
  pending: batch.pending,
  succeeded: batch.succeeded,
  failed: batch.failed,
  failed_in: batch.failedIn.filter((queue) => permissions.maySee(queue)),
  opened_at: timeOrNull(openedAt),
  ended_at: timeOrNull(endedAt),
});

/** A page holds fewer than asked for where the sender may not see all queues. */
async function list({ inspector }: Dashboard, { query, permissions }: ApiRequest) {
  const page = { queue: given(query, 'queue'), size: sizeOf(query), page: pageOf(query) };
  const batches = await inspector.listBatches(page);
  return {
    batches: batches.filter(({ queue }) => permissions.maySee(queue)).map((batch) => showBatch(batch, permissions)),
  };
}

async function show({ inspector }: Dashboard, { params, permissions }: ApiRequest) {
  const batch = await inspector.getBatch(params.queue!, params.batch!);
  if (!batch) throw new BatchNotFoundError(params.queue!, params.batch!);
  return showBatch(batch, permissions);
}

export const batchRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'batches',
    summary: 'Batches with their progress, newest first',
    scope: 'filtered',
    query: [QUEUE_PARAMETER, ...PAGE_PARAMETERS],
    reply: shape({ batches: listOf(ref('Batch')) }),
    handle: list,
  },
  {
    method: 'GET',
    path: 'queues/{queue}/batches/{batch}',
    summary: 'How far a batch is',
    reply: ref('Batch'),
    handle: show,
  },
  {
    method: 'POST',
    path: 'queues/{queue}/batches/{batch}:close',
    summary: 'Close a batch: no more members come from outside',
    handle: ({ inspector }, { params }) => inspector.closeBatch(params.queue!, params.batch!),
  },
  {
    method: 'DELETE',
    path: 'queues/{queue}/batches/{batch}',
    summary: 'Delete what is known of a batch that has ended; its tasks stay',
    handle: ({ inspector }, { params }) => inspector.deleteBatch(params.queue!, params.batch!),
  },
];
