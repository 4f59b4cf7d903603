import { type Duration, parseDuration } from '../duration.js';
import { InvalidTaskError } from '../errors.js';
import { FOREIGN } from '../foreign-names.js';
import { describe, nearest, rejectUnknownKeys, requirePlainObject } from '../validation.js';
import { oneOf } from './one-of.js';

/**
 * What an enqueue does when there is such a task already. `reject`, `existing`, `replace`: as `onDuplicate`; the others are the
 * options of these names (`throttle` is `existing`).
 */
export type RepeatPolicy = 'reject' | 'existing' | 'replace' | 'debounce' | 'latest' | 'supersede' | 'once';

/** The policies whose last call counts. */
export const LAST_COUNTS: ReadonlySet<RepeatPolicy> = new Set(['replace', 'debounce', 'latest', 'supersede']);

const DUPLICATE_POLICIES = ['reject', 'existing', 'replace'] as const;
/** What an enqueue does when another task holds the unique lock. */
export type DuplicatePolicy = (typeof DUPLICATE_POLICIES)[number];

const LOCK_ENDS = ['succeeded', 'started', 'expired'] as const;
/** What frees the lock of a unique task before its time. */
export type LockEnd = (typeof LOCK_ENDS)[number];

/** How a task is unique, beyond a time. */
export interface UniqueOptions {
  /** How long the lock lasts at most, from when the task may run; at least 1 second, in whole seconds, rounded up. */
  for: Duration;
  /**
   * What is compared: `payload`, as asynq does; `key`, the business id (`key` of the definition or the call); or the names of fields of the
   * payload. Default `payload`.
   */
  by?: 'payload' | 'key' | readonly string[];
  /**
   * What frees the lock: `succeeded`, as in asynq; `started`, when a handler begins, so that one more task may wait; `expired`, only the time.
   * Default `succeeded`.
   */
  until?: LockEnd;
  /**
   * When another task holds the lock: `reject` with DuplicateTaskError; `existing` returns that task, with `created: false`; `replace` gives
   * that task the new payload, options and time, unless it runs or is archived: then DuplicateTaskError. Default `reject`.
   */
  onDuplicate?: DuplicatePolicy;
}

/** When a debounced task runs. */
export interface DebounceOptions {
  /** From the last call on; whole seconds, rounded up. */
  wait: Duration;
  /** From the first call on, at the latest; whole seconds, rounded up. Default: no limit. */
  maxWait?: Duration;
}

/** At most one of these, and not with a plain `unique`. */
export const REPEAT_NAMES = ['unique', 'once', 'debounce', 'throttle', 'latest', 'supersede'] as const;
export type RepeatName = (typeof REPEAT_NAMES)[number];

/** An option about repeats after all checks. */
export interface RepeatSettings {
  /** As the user knows it. */
  readonly option: RepeatName;
  readonly policy: RepeatPolicy;
  /** `identity`: the key if there is one, else the payload. */
  readonly by: 'payload' | 'key' | 'identity' | readonly string[];
  readonly until: LockEnd;
  /** Milliseconds: of `for`, `once`, `throttle` and `wait`; 0 without a time. */
  readonly time: number;
  /** Milliseconds. */
  readonly maxWait: number | undefined;
}

const UNIQUE_NAMES = ['for', 'by', 'until', 'onDuplicate'] as const satisfies readonly (keyof UniqueOptions)[];
const DEBOUNCE_NAMES = ['wait', 'maxWait'] as const satisfies readonly (keyof DebounceOptions)[];

const BASE = { by: 'key', until: 'succeeded', time: 0, maxWait: undefined } as const;

/** As an option it stands for asynq's Unique, or for the `wait` of a debounce. */
export const isTime = (value: unknown): value is Duration => typeof value === 'number' || typeof value === 'string';

/** @throws InvalidTaskError @returns the options of an object, which may be no more than asynq's Unique */
export function readUnique(value: unknown): RepeatSettings {
  if (value === true) throw new InvalidTaskError("unique must say for how long, such as unique: '1h', and not be true");
  const options = requirePlainObject(value, 'unique', InvalidTaskError) as Partial<UniqueOptions>;
  rejectUnknownKeys(options, UNIQUE_NAMES, 'option of unique:', InvalidTaskError, FOREIGN.unique);
  const { by = 'payload', until = 'succeeded', onDuplicate = 'reject' } = options;
  if (options.for === undefined) throw new InvalidTaskError("unique needs for, such as unique: { for: '1h' }");
  return {
    option: 'unique',
    policy: oneOf(onDuplicate, DUPLICATE_POLICIES, 'onDuplicate of unique'),
    by: readBy(by),
    until: oneOf(until, LOCK_ENDS, 'until of unique'),
    time: atLeastASecond(options.for, 'for of unique'),
    maxWait: undefined,
  };
}

/** @throws InvalidTaskError */
export function readOnce(value: unknown): RepeatSettings {
  return { ...BASE, option: 'once', policy: 'once', time: atLeastASecond(value, 'once') };
}

/** @throws InvalidTaskError */
export function readThrottle(value: unknown): RepeatSettings {
  const time = atLeastASecond(value, 'throttle');
  return { option: 'throttle', policy: 'existing', by: 'identity', until: 'expired', time, maxWait: undefined };
}

/** @throws InvalidTaskError */
export function readDebounce(value: unknown): RepeatSettings {
  if (isTime(value)) return { ...BASE, option: 'debounce', policy: 'debounce', time: positive(value, 'debounce') };
  if (value === true)
    throw new InvalidTaskError("debounce must say for how long, such as debounce: '5s', and not be true");
  const options = requirePlainObject(value, 'debounce', InvalidTaskError) as Partial<DebounceOptions>;
  rejectUnknownKeys(options, DEBOUNCE_NAMES, 'option of debounce:', InvalidTaskError, FOREIGN.debounce);
  if (options.wait === undefined) throw new InvalidTaskError("debounce needs wait, such as debounce: { wait: '5s' }");
  const time = positive(options.wait, 'wait of debounce');
  const maxWait = options.maxWait === undefined ? undefined : positive(options.maxWait, 'maxWait of debounce');
  if (maxWait !== undefined && maxWait < time) {
    throw new InvalidTaskError(
      `maxWait of debounce, ${describe(options.maxWait)}, is shorter than wait, ${describe(options.wait)}; make it longer`,
    );
  }
  return { ...BASE, option: 'debounce', policy: 'debounce', time, maxWait };
}

/** @throws InvalidTaskError */
export function readSwitch(option: 'latest' | 'supersede', value: unknown): RepeatSettings {
  if (value !== true) throw new InvalidTaskError(`${option} must be true or false, not ${describe(value)}`);
  return { ...BASE, option, policy: option };
}

function readBy(value: unknown): RepeatSettings['by'] {
  if (value === 'payload' || value === 'key') return value;
  if (!Array.isArray(value)) {
    const near = typeof value === 'string' ? nearest(value, ['payload', 'key']) : undefined;
    const remedy = near ? `did you mean "${near}"?` : "give 'payload', 'key' or a list of fields, as in ['orderId']";
    throw new InvalidTaskError(`by of unique: ${describe(value)} is unknown; ${remedy}`);
  }
  const names: readonly unknown[] = value;
  const wrong = names.find((one) => typeof one !== 'string' || one === '');
  if (names.length === 0 || wrong !== undefined) {
    const what = names.length === 0 ? 'is an empty list' : `has ${describe(wrong)} in its list`;
    throw new InvalidTaskError(
      `by of unique ${what}; name fields of the payload, as in ['orderId'], or leave it out to compare the whole payload`,
    );
  }
  return [...new Set(names as string[])].sort();
}

function positive(value: unknown, option: string): number {
  const milliseconds = parseDuration(value, option, InvalidTaskError);
  if (milliseconds > 0) return milliseconds;
  throw new InvalidTaskError(`${option} must be longer than 0, not ${describe(value)}`);
}

function atLeastASecond(value: unknown, option: string): number {
  const milliseconds = parseDuration(value, option, InvalidTaskError);
  if (milliseconds >= 1000) return milliseconds;
  const hint = typeof value === 'number' && value > 0 ? ` milliseconds; give '${value}s' for seconds` : '';
  throw new InvalidTaskError(`${option} must be at least 1 second, not ${describe(value)}${hint}`);
}
