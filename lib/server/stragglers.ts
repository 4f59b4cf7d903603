import type { Clock } from '../clock.js';

/** Milliseconds a round or a pass waits for a queue that does not answer: one node of a cluster may hang. */
export const STRAGGLER_AFTER = 1_000;

/** What the work resolves to; `undefined` when that takes longer: it goes on, and is not waited for. */
export function withoutStragglers<T>(work: Promise<T>, clock: Clock): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(STRAGGLER_AFTER, () => resolve(undefined));
    work.finally(() => timer.cancel()).then(resolve, reject);
  });
}
