import { setImmediate as turn } from 'node:timers/promises';

/** Calls `work` for every item, at most so many at the same time; the results in the order of the items. */
export async function eachOf<T, R>(items: readonly T[], atOnce: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return results;
}

/** Milliseconds of work after which other requests have their turn. */
const TURN = 10;

/** Maps what is slow for some: how long all of it takes is up to whoever enqueued it, and nobody else is to wait for that. */
export async function mapInTurns<T, R>(items: readonly T[], work: (item: T) => R): Promise<R[]> {
  const results: R[] = [];
  let begun = performance.now();
  for (const item of items) {
    results.push(work(item));
    if (performance.now() - begun < TURN) continue;
    await turn();
    begun = performance.now();
  }
  return results;
}
