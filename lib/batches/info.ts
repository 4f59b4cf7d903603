import type { BatchProgress } from '../broker/batches.js';
import { toDate } from '../clock.js';
import type { BatchInfo } from '../task/batch.js';

/** A batch as users see it. */
export const viewBatch = ({ home, openedAt, endedAt, ...progress }: BatchProgress): BatchInfo => ({
  id: progress.id,
  queue: home,
  name: progress.name,
  state: progress.state,
  total: progress.total,
  pending: progress.pending,
  succeeded: progress.succeeded,
  failed: progress.failed,
  failedIn: progress.failedIn,
  openedAt: toDate(openedAt),
  endedAt: endedAt === undefined ? undefined : toDate(endedAt),
});
