import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from './clock.js';

/**
 * Settles as the work does, or after `milliseconds` with what `onTimeout` returns or throws
 * (default `undefined`). The work goes on; what becomes of it later is ignored.
 */
export function withTimeout<T, L = undefined>(
  work: Promise<T>,
  milliseconds: number,
  clock: Timers,
  onTimeout?: () => L,
): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(milliseconds, () => {
      try {
        resolve(onTimeout?.() as L);
      } catch (error) {
        reject(error as Error);
      }
    });
    work.then(
      (result) => {
        timer.cancel();
        resolve(result);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error as Error);
      },
    );
  });
}

/** The part of a clock a timeout needs. */
export type Timers = Pick<Clock, 'after'>;

/**
 * Returns whether the work resolved within `milliseconds`.
 *
 * @throws what the work throws in that time
 */
export const finishesWithin = (work: Promise<unknown>, milliseconds: number, clock: Timers): Promise<boolean> =>
  withTimeout(
    work.then(() => true),
    milliseconds,
    clock,
    () => false,
  );

/** All in milliseconds. */
export interface BackoffOptions {
  /** The longest delay. Default 5,000. */
  readonly longest?: number | undefined;
  /** Where the jitter begins. Default: half of what the attempt may wait at most. */
  readonly shortest?: number;
  /** A number from 0 to 1. Default `Math.random`. */
  readonly random?: () => number;
}

/**
 * Milliseconds to wait after a number of failures in a row: at most 100, 200, 400 … up to
 * `longest`, with jitter, so that processes that failed together do not try again together.
 */
export function backoff(
  failures: number,
  { longest = 5_000, shortest, random = Math.random }: BackoffOptions = {},
): number {
  const upper = Math.min(longest, 100 * 2 ** Math.min(failures - 1, 20));
  const lower = shortest ?? upper / 2;
  return lower + (upper - lower) * random();
}

/**
 * Waits until all have settled, so that one failure does not hide work that still runs.
 *
 * @returns the results, in order
 * @throws the error of the first that failed, in order
 */
export async function settleAll<T>(work: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}

/**
 * Calls `work` for every item, for at most `concurrency` of them at the same time.
 *
 * @returns the results, in the order of the items
 * @throws the first error; work that runs goes on, but the rest may not be begun: let `work` catch
 * what must not end the others
 */
export async function mapConcurrent<T, R>(
  items: readonly T[],
  concurrency: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
  return results;
}

/** Milliseconds of work after which others have their turn. */
const TURN_MS = 10;

/**
 * Maps items whose work may be slow, and lets others have their turn in between: how long all of it
 * takes may be up to whoever made the items.
 */
export async function mapInTurns<T, R>(items: readonly T[], work: (item: T) => R): Promise<R[]> {
  const results: R[] = [];
  let begun = performance.now();
  for (const item of items) {
    results.push(work(item));
    if (performance.now() - begun < TURN_MS) continue;
    await nextTurn();
    begun = performance.now();
  }
  return results;
}

/** Whether `await` would wait for the value. */
export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';

/**
 * For hooks and listeners that should return nothing but may be async: their rejection would end
 * the process.
 */
export function watchRejection(returned: unknown, onRejected: (error: unknown) => void): void {
  if (isThenable(returned)) Promise.resolve(returned).catch(onRejected);
}
