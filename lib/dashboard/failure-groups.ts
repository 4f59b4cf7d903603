import { REDACTED } from '../redaction/rules.js';

/** A failed task, as far as errors are compared. */
export interface FailedTask {
  readonly id: string;
  readonly type: string;
  readonly state: 'retry' | 'archived';
  /** The visible part of its last error; not empty. */
  readonly error: string;
  readonly failedAt: Date | undefined;
}

/** Failures of one type with one reason. */
export interface FailureGroup {
  readonly type: string;
  /** The newest error. */
  readonly error: string;
  /** The longest text that all of its errors contain, to search for. */
  readonly match: string;
  readonly retry: number;
  readonly archived: number;
  readonly first: Date | undefined;
  readonly last: Date | undefined;
  /** The task that failed last. */
  readonly taskId: string;
}

/** Only the beginning of a longer error is compared. */
const MAX_COMPARED_LENGTH = 300;

/**
 * What varies between errors of the same reason: ids, numbers, quoted texts, and redacted parts.
 */
const VARYING = new RegExp(
  [
    REDACTED.replace(/[[\]]/g, String.raw`\$&`),
    String.raw`[\da-f]{8}-[\da-f-]{27}`,
    String.raw`\b(?=[a-f]*\d)[\da-f]{8,}\b`,
    String.raw`"[^"\n]*"|'[^'\n]*'`,
    String.raw`[^\s@]+@[^\s@:,;]+`,
    String.raw`\d+`,
  ].join('|'),
  'gi',
);

/** The parts that all errors of this reason share. */
const constantParts = (error: string): string[] =>
  error.slice(0, MAX_COMPARED_LENGTH).split('\n', 1)[0]!.split(VARYING);

/** Groups failures by type and reason, the most frequent first. */
export function groupFailures(tasks: Iterable<FailedTask>): FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  for (const task of tasks) {
    const parts = constantParts(task.error);
    const key = JSON.stringify([task.type, parts]);
    groups.set(key, add(groups.get(key) ?? begin(task, parts), task));
  }
  return [...groups.values()].sort((a, b) => sizeOf(b) - sizeOf(a) || timeOf(b.last) - timeOf(a.last));
}

const begin = ({ id, type, error }: FailedTask, parts: readonly string[]): FailureGroup => ({
  type,
  error,
  retry: 0,
  archived: 0,
  first: undefined,
  last: undefined,
  taskId: id,
  match: parts
    .map((part) => part.trim())
    .reduce((longest, part) => (part.length > longest.length ? part : longest), ''),
});

function add(group: FailureGroup, { id, state, error, failedAt }: FailedTask): FailureGroup {
  const counted = { ...group, [state]: group[state] + 1 };
  if (!failedAt) return counted;
  const first = group.first && group.first <= failedAt ? group.first : failedAt;
  const newest = !group.last || group.last < failedAt ? { error, taskId: id, last: failedAt } : {};
  return { ...counted, first, ...newest };
}

const sizeOf = ({ retry, archived }: FailureGroup): number => retry + archived;
const timeOf = (date: Date | undefined): number => date?.getTime() ?? 0;
