import type { Clock } from '../../clock.js';
import { InvalidStepError, ShutdownError } from '../../errors.js';
import { describe } from '../../validation.js';
import type { EachSettings } from './step-options.js';
import { requireJson } from './step-result.js';
import type { StepsAttempt, StepsDeps } from './steps-deps.js';

/** Rows that take no time: the event loop gets a turn so often, in milliseconds. */
const TURN_MS = 10;

interface Progress {
  readonly done: number;
  readonly cursor: unknown;
}

export interface EachRow extends EachSettings {
  readonly step: string;
  readonly rows: Rows | ((from: unknown) => Rows | Promise<Rows>);
  readonly work: (row: unknown, index: number) => Promise<unknown>;
  /** What was stored before. */
  readonly before: Progress | undefined;
  readonly attempt: Pick<StepsAttempt, 'abort' | 'signal'>;
  readonly isStopping: StepsDeps['isStopping'];
  readonly clock: Clock;
  readonly store: (done: number, cursor: unknown, isLast: boolean) => Promise<void>;
}

type Rows = Iterable<unknown> | AsyncIterable<unknown>;

/** See TaskSteps.each. */
export async function eachRow(step: EachRow): Promise<number> {
  const { before, work, clock, every, attempt } = step;
  const from = before?.done ?? 0;
  const rows = await openRows(step);
  const abort = new Abort(attempt.signal);
  let [done, cursor, stored] = [from, before?.cursor, from];
  let [storedAt, turnAt] = [clock.elapsed(), performance.now()];
  const store = async (): Promise<void> => {
    if (stored === done) return;
    await step.store(done, cursor, false);
    [stored, storedAt] = [done, clock.elapsed()];
  };
  try {
    for (;;) {
      if (step.isStopping?.()) attempt.abort?.(new ShutdownError());
      attempt.signal.throwIfAborted();
      const next = await abort.before(rows.next());
      if (next.done) break;
      await work(next.value, done);
      cursor = step.cursor ? cursorOf(step, next.value) : done + 1;
      done += 1;
      if (clock.elapsed() - storedAt >= every) await store();
      if (performance.now() - turnAt < TURN_MS) continue;
      await new Promise((resolve) => setImmediate(resolve));
      turnAt = performance.now();
    }
  } catch (error) {
    // What is done must not be done again. The error of the row counts, whatever becomes of this.
    await store().catch(() => undefined);
    throw error;
  } finally {
    abort.forget();
    // One that is in the middle of a row that was left ends when that does.
    void Promise.resolve(rows.return?.()).catch(() => undefined);
  }
  await step.store(done, cursor, true);
  return done;
}

/** With one that JSON does not keep the next call would begin somewhere else. */
function cursorOf(step: EachRow, row: unknown): unknown {
  const cursor = step.cursor!(row);
  if (cursor === undefined) {
    throw new InvalidStepError(`the cursor of step "${step.step}" is undefined; return what says where the row is`);
  }
  requireJson(cursor, `the cursor of step "${step.step}"`);
  return cursor;
}

type Iteration = { next(): Promise<IteratorResult<unknown>>; return?(): unknown };

async function openRows({ step, rows, from, before }: EachRow): Promise<Iteration> {
  const isGiven = typeof rows === 'function';
  const given: unknown = isGiven ? await rows(before ? before.cursor : from) : rows;
  const iteration = iterate(given);
  if (!iteration) {
    const what = isGiven ? `rows of step "${step}" must return` : `rows of step "${step}" must be`;
    throw new InvalidStepError(`${what} an iterable, or an async iterable, not ${describe(given)}`);
  }
  for (let skipped = 0; !isGiven && skipped < (before?.done ?? 0); skipped++) await iteration.next();
  return iteration;
}

function iterate(given: unknown): Iteration | undefined {
  if (given === null || given === undefined) return undefined;
  const asynchronous = (given as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator];
  if (typeof asynchronous === 'function') return asynchronous.call(given) as Iteration;
  const synchronous = (given as Partial<Iterable<unknown>>)[Symbol.iterator];
  if (typeof synchronous !== 'function') return undefined;
  const iterator = synchronous.call(given);
  return {
    next: async () => {
      const { value, done } = iterator.next();
      return { value: await value, done: done ?? false } as IteratorResult<unknown>;
    },
    return: () => iterator.return?.(),
  };
}

/** Has waiting for a row not outlast the abort. A race with one promise would keep every row until the end. */
class Abort {
  private reject: ((reason: unknown) => void) | undefined;

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', this.listener, { once: true });
  }

  /** Resolves as the promise does, or rejects with the reason of the abort. */
  before<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.reject = reject;
      promise.then(resolve, reject);
    });
  }

  forget(): void {
    this.signal.removeEventListener('abort', this.listener);
  }

  private readonly listener = (): void => this.reject?.(this.signal.reason);
}
