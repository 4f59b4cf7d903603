import { isUnreadable, type QueueRow } from '../api/types.js';
import type { Moment } from '../live/live.js';
import { sampleOf } from '../live/series.js';
import { duration, percent, plural } from '../text/format.js';

/** Why a queue needs somebody. */
export interface Trouble {
  /** One word, for a flag. */
  name: 'unreadable' | 'paused' | 'late' | 'failing' | 'archiving';
  /** What was seen. */
  text: string;
}

/** A pending task that waits longer is late. */
export const LATE_AFTER_MS = 60_000;
/** Of the attempts since the first sample: from this part on, a queue is failing … */
const FAILING_FROM = 0.1;
/** … if at least so many have failed: one failure of two tasks is no trend. */
const FAILURES_AT_LEAST = 5;

/**
 * What is wrong with a queue: it cannot be read, it is paused, its oldest pending task is late, a
 * tenth of its attempts fail, or its archive grows. The last two are of the samples, up to 15
 * minutes.
 */
export function troublesOf(row: QueueRow, moments: readonly Moment[]): readonly Trouble[] {
  if (isUnreadable(row)) return [{ name: 'unreadable', text: row.error }];
  const found: Trouble[] = [];
  if (row.paused) found.push({ name: 'paused', text: 'No server takes its tasks' });
  if (row.pending > 0 && row.oldest_pending_ms > LATE_AFTER_MS) {
    found.push({ name: 'late', text: `A task is pending for ${duration(row.oldest_pending_ms / 1000)}` });
  }
  const first = moments.map((moment) => sampleOf(moment, row.queue)).find((sample) => sample !== undefined);
  if (!first) return found;
  const processed = row.processed_total - first.processed_total;
  const failed = row.failed_total - first.failed_total;
  if (failed >= FAILURES_AT_LEAST && failed >= processed * FAILING_FROM) {
    found.push({ name: 'failing', text: `${percent(failed, processed)} of its attempts failed lately` });
  }
  const archived = row.archived - first.archived;
  if (archived > 0) found.push({ name: 'archiving', text: `${plural(archived, 'task')} archived lately` });
  return found;
}
