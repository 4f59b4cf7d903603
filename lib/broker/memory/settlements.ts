import type { Settlement } from '../broker.js';

/** A superseded task that would come again would run after the one that is newer: it is revoked. */
export function withoutReturn(item: Settlement): Settlement {
  const returns = item.kind === 'retry' || item.kind === 'requeue' || item.kind === 'wait' || item.kind === 'sleep';
  return returns ? { kind: 'done', lease: item.lease, uniqueKey: '', revoked: true } : item;
}

export const countsAsFailed = (item: Settlement): boolean =>
  item.kind === 'archive' || (item.kind === 'retry' && item.countAsFailure);

export const countsAsProcessed = (item: Settlement): boolean =>
  item.kind === 'done' || item.kind === 'complete' || countsAsFailed(item);
