import { isDeepStrictEqual } from 'node:util';
import type { TaskInfo } from '../task/info.js';

/** A task as tests look at it: its payload decoded, or as bytes when it cannot be decoded. */
export interface TestTask<P = unknown> extends Omit<TaskInfo, 'payload' | 'toJSON'> {
  readonly payload: P;
  /** As it is stored. */
  readonly rawPayload: Buffer;
}

/** Some of a task's fields, and of a payload's; what is left out may be anything. */
export type TaskFields<P = unknown> = { readonly [K in keyof TestTask<P>]?: Part<TestTask<P>[K]> };

type Part<T> = T extends Date | Uint8Array ? T : T extends object ? { readonly [K in keyof T]?: Part<T[K]> } : T;

/** Which tasks a test means. */
export type TaskFilter<P = unknown> = TaskFields<P> | ((task: TestTask<P>) => boolean);

/** Whether the task is one the filter means; without a filter every task is. */
export const matchesFilter = <P>(task: TestTask<P>, filter: TaskFilter<P> | undefined): boolean =>
  typeof filter === 'function' ? filter(task) : filter === undefined || contains(task, filter);

/** Whether everything that `expected` names is in `actual`, at every depth. Arrays, dates and bytes are compared whole. */
function contains(actual: unknown, expected: unknown): boolean {
  if (!isRecord(expected) || !isRecord(actual)) return isDeepStrictEqual(actual, expected);
  return Object.entries(expected).every(([key, value]) => contains(actual[key], value));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  return !Array.isArray(value) && !(value instanceof Date) && !ArrayBuffer.isView(value);
}
