import { isDeepStrictEqual } from 'node:util';
import type { TaskInfo } from '../task/info.js';

/** A task as tests see it: its payload decoded, or bytes when it cannot be decoded. */
export interface TestTask<P = unknown> extends Omit<
  TaskInfo,
  'payload' | 'toJSON' | 'created' | 'crashes' | 'lastCrashes'
> {
  readonly payload: P;
  /** The payload as it is stored. */
  readonly rawPayload: Buffer;
}

/** Some fields of a task and of its payload; the others may be anything. */
export type TaskFields<P = unknown> = { readonly [K in keyof TestTask<P>]?: Part<TestTask<P>[K]> };

type Part<T> = T extends Date | Uint8Array ? T : T extends object ? { readonly [K in keyof T]?: Part<T[K]> } : T;

/** The tasks a test is about. */
export type TaskFilter<P = unknown> = TaskFields<P> | ((task: TestTask<P>) => boolean);

/** Returns whether the task fits the filter; without a filter every task does. */
export const matchesFilter = <P>(task: TestTask<P>, filter: TaskFilter<P> | undefined): boolean =>
  typeof filter === 'function' ? filter(task) : filter === undefined || contains(task, filter);

/**
 * Returns whether everything in `expected` is in `actual`, at every depth. Arrays, dates and bytes
 * compare as a whole.
 */
function contains(actual: unknown, expected: unknown): boolean {
  if (!isRecord(expected) || !isRecord(actual)) return isDeepStrictEqual(actual, expected);
  return Object.entries(expected).every(([key, value]) => contains(actual[key], value));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  return !Array.isArray(value) && !(value instanceof Date) && !ArrayBuffer.isView(value);
}
