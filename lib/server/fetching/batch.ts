import { MAX_CALL_BYTES } from '../../broker/call-size.js';
import type { ActiveTask } from '../attempt/active-task.js';

/**
 * The most tasks one exchange settles, and the most it claims: bounds the time one script holds
 * Redis.
 */
export const MAX_BATCH_SIZE = 256;

/**
 * Removes from the finished tasks those that one exchange settles: from the first, as many as fit
 * into a call, and always one.
 */
export const takeBatch = (finished: ActiveTask[]): ActiveTask[] => finished.splice(0, batchSize(finished));

function batchSize(finished: readonly ActiveTask[]): number {
  let count = 0;
  for (let bytes = 0; count < finished.length && count < MAX_BATCH_SIZE; count++) {
    const { settlement } = finished[count]!.verdict!;
    if ('message' in settlement) bytes += settlement.message?.payload.length ?? 0;
    if ('result' in settlement && settlement.result !== undefined) bytes += Buffer.byteLength(settlement.result);
    if (bytes > MAX_CALL_BYTES) return Math.max(1, count);
  }
  return count;
}
