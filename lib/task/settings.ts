import { types } from 'node:util';
import { ceilSeconds, floorSeconds } from '../clock.js';
import { parseDuration } from '../duration.js';
import { InvalidTaskError } from '../errors.js';
import { FOREIGN } from '../foreign-names.js';
import {
  describe,
  isBlank,
  refuseBraces,
  rejectUnknownKeys,
  requireObject,
  requirePlainObject,
} from '../validation.js';
import type { ExpiryPolicy } from '../wire/expiry.js';
import { WAITING_GROUP } from '../wire/keys.js';
import { TASK_OPTION_NAMES, type TaskOptions } from './options.js';
import {
  isTime,
  readDebounce,
  readOnce,
  readSwitch,
  readThrottle,
  readUnique,
  REPEAT_NAMES,
  type RepeatName,
  type RepeatSettings,
} from './repeats.js';

/** Options after all checks, in the units of the store. */
export interface TaskSettings {
  readonly queue: string;
  readonly maxRetry: number;
  /** Seconds; 0 = not set: asynq's 30 minutes, unless there is a deadline. */
  readonly timeout: number;
  /** Unix seconds; 0 = not set. */
  readonly deadline: number;
  /** Milliseconds; 0 = it does not expire. */
  readonly expiresIn: number;
  readonly onExpiry: ExpiryPolicy;
  /** Milliseconds of asynq's lock; 0 = not unique, or as `repeat` says. */
  readonly unique: number;
  readonly repeat: RepeatSettings | undefined;
  /** Milliseconds since the epoch. At most one of `processAt` and `processIn` is set. */
  readonly processAt: number | undefined;
  /** Milliseconds from the call on. */
  readonly processIn: number | undefined;
  readonly taskId: string | undefined;
  /** Seconds. */
  readonly retention: number;
  /** Empty = none. */
  readonly group: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/**
 * asynq's defaults. The timeout of 30 minutes is not among them: it applies only without a
 * deadline.
 */
export const DEFAULT_SETTINGS: TaskSettings = Object.freeze({
  queue: 'default',
  maxRetry: 25,
  timeout: 0,
  deadline: 0,
  expiresIn: 0,
  onExpiry: 'archive',
  unique: 0,
  repeat: undefined,
  processAt: undefined,
  processIn: undefined,
  taskId: undefined,
  retention: 0,
  group: '',
  headers: undefined,
});

type Draft = { -readonly [K in keyof TaskSettings]: TaskSettings[K] };

/** How each option changes the settings. */
const APPLY = new Map<string, (draft: Draft, value: never) => void>(
  Object.entries({
    queue: (draft, value: unknown) => {
      draft.queue = keyName(value, 'queue', 'queue name must contain one or more characters');
    },
    maxRetry: (draft, value: unknown) => {
      draft.maxRetry = retries(value);
    },
    timeout: (draft, value: unknown) => {
      draft.timeout = wholeSeconds(value, 'timeout');
    },
    deadline: (draft, value: unknown) => {
      draft.deadline = value === false ? 0 : deadline(value);
    },
    expiresIn: (draft, value: unknown) => {
      draft.expiresIn = value === false ? 0 : nonNegative(value, 'expiresIn');
    },
    onExpiry: (draft, value: unknown) => {
      draft.onExpiry = expiryPolicy(value);
    },
    unique: (draft, value: unknown) => {
      if (value === false) return endRepeat(draft, 'unique');
      draft.unique = isTime(value) ? lockTime(value) : 0;
      draft.repeat = isTime(value) ? undefined : readUnique(value);
    },
    once: (draft, value: unknown) => repeat(draft, 'once', value, readOnce),
    debounce: (draft, value: unknown) => repeat(draft, 'debounce', value, readDebounce),
    throttle: (draft, value: unknown) => repeat(draft, 'throttle', value, readThrottle),
    latest: (draft, value: unknown) => repeat(draft, 'latest', value, () => readSwitch('latest', value)),
    supersede: (draft, value: unknown) => repeat(draft, 'supersede', value, () => readSwitch('supersede', value)),
    processAt: (draft, value: unknown) => {
      draft.processAt = time(value, 'processAt');
      draft.processIn = undefined;
    },
    processIn: (draft, value: unknown) => {
      draft.processIn = wait(value);
      draft.processAt = undefined;
    },
    taskId: (draft, value: unknown) => {
      draft.taskId = keyName(value, 'taskId', 'task ID cannot be empty');
    },
    retention: (draft, value: unknown) => {
      draft.retention = wholeSeconds(value, 'retention');
    },
    group: (draft, value: unknown) => {
      draft.group = value === false ? '' : groupName(value);
    },
    headers: (draft, value: unknown) => {
      draft.headers = mergeHeaders(draft.headers, value);
    },
  } satisfies Record<keyof TaskOptions, (draft: Draft, value: unknown) => void>),
);

/**
 * Returns the settings of `base`, overridden by the options.
 *
 * @param further names of options that are none of the settings, and left to the caller
 * @throws InvalidTaskError for the first invalid option, with asynq's text if asynq refuses it too
 */
export function applyOptions(base: TaskSettings, options: TaskOptions, further: readonly string[] = []): TaskSettings {
  requireObject(options, 'task options', InvalidTaskError);
  if (options.processAt !== undefined && options.processIn !== undefined) {
    throw new InvalidTaskError('processAt and processIn exclude each other; give one of them');
  }
  refuseTwoRepeats(options);
  const draft: Draft = { ...base };
  for (const key of Object.keys(options) as (keyof TaskOptions)[]) {
    const apply = APPLY.get(key);
    if (!apply) {
      const known = [...TASK_OPTION_NAMES, ...further];
      rejectUnknownKeys(options, known, 'task option', InvalidTaskError, FOREIGN.task);
    } else if (options[key] !== undefined) apply(draft, options[key] as never);
  }
  return draft;
}

/** The last option about repeats replaces an earlier one. `false` ends only the option of this name. */
function repeat(draft: Draft, option: RepeatName, value: unknown, read: (value: unknown) => RepeatSettings): void {
  if (value === false) return endRepeat(draft, option);
  draft.unique = 0;
  draft.repeat = read(value);
}

function endRepeat(draft: Draft, option: RepeatName): void {
  if (option === 'unique') draft.unique = 0;
  if (draft.repeat?.option === option) draft.repeat = undefined;
}

function refuseTwoRepeats(options: TaskOptions): void {
  let first: string | undefined;
  for (const name of REPEAT_NAMES) {
    if (options[name] === undefined || options[name] === false) continue;
    if (first) throw new InvalidTaskError(`${first} and ${name} exclude each other; give one of them`);
    first = name;
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** A name that becomes part of a key: a {@link name} without braces. */
const keyName = (value: unknown, option: string, blank: string): string =>
  refuseBraces(name(value, option, blank), option, InvalidTaskError);

function groupName(value: unknown): string {
  const group = keyName(value, 'group', 'group key cannot be empty');
  if (group !== WAITING_GROUP) return group;
  throw new InvalidTaskError(`group "${group}" holds the tasks that wait for others (after); choose another name`);
}

/** Checks that a value is text, not blank (`blank` is asynq's message), and valid Unicode. */
export function name(value: unknown, option: string, blank: string, form?: string): string {
  if (typeof value !== 'string') {
    const remedy = form === undefined ? '' : `; write ${form}`;
    throw new InvalidTaskError(`${option} must be a string, not ${describe(value)}${remedy}`);
  }
  if (isBlank(value)) {
    throw new InvalidTaskError(`${blank}; ${option} is ${describe(value)}: give a text that is not blank`);
  }
  if (LONE_SURROGATE.test(value)) {
    throw new InvalidTaskError(
      `${option} ${describe(value)} contains half a character (a lone surrogate); use valid Unicode`,
    );
  }
  return value;
}

/** asynq stores an int32, and reads a negative number as 0: whoever gives one means something else. */
function retries(value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 31 - 1) return value;
  const hint = Number(value) < 0 ? '; 0 is one attempt, and for retries without end give a large number' : '';
  throw new InvalidTaskError(`maxRetry must be a whole number from 0 to 2147483647, not ${describe(value)}${hint}`);
}

/** What to set instead of a negative length of time. */
const ZERO = {
  timeout: 'leave it out, or set 0, for 30 minutes, or no timeout if there is a deadline',
  expiresIn: 'set 0 for a task that does not expire',
  retention: 'set 0 for none',
} as const;

function nonNegative(value: unknown, option: keyof typeof ZERO): number {
  const milliseconds = parseDuration(value, option, InvalidTaskError);
  if (milliseconds >= 0) return milliseconds;
  throw new InvalidTaskError(`${option} must not be negative, as ${describe(value)} is; ${ZERO[option]}`);
}

/** A small number most likely counts seconds. @returns seconds, rounded up */
function wholeSeconds(value: unknown, option: 'timeout' | 'retention'): number {
  if (typeof value === 'number' && value > 0 && value < 1000) {
    throw new InvalidTaskError(
      `${option}: ${value} is ${value} milliseconds, and asynq counts whole seconds; give '${value}s', or 1000 and more`,
    );
  }
  return ceilSeconds(nonNegative(value, option));
}

/** A number beyond this is most likely a point in time: 2001 and later in milliseconds since 1970. */
const LONGEST_WAIT_MS = 1e12;

/** A number may be computed, as the time of another clock less that of this one. A text with a minus is a slip. */
function wait(value: unknown): number {
  const milliseconds = parseDuration(value, 'processIn', InvalidTaskError);
  if (typeof value === 'string' && milliseconds < 0) {
    throw new InvalidTaskError(
      `processIn must not be negative, as ${describe(value)} is; leave it out for a task that starts at once`,
    );
  }
  if (typeof value !== 'number' || milliseconds < LONGEST_WAIT_MS) return milliseconds;
  throw new InvalidTaskError(
    `processIn: ${value} milliseconds are ${Math.round(value / 31_557_600_000)} years; ` +
      `for a point in time give processAt: new Date(${value})`,
  );
}

function expiryPolicy(value: unknown): ExpiryPolicy {
  if (value === 'archive' || value === 'drop') return value;
  throw new InvalidTaskError(`onExpiry must be "archive" or "drop", not ${describe(value)}`);
}

function lockTime(value: unknown): number {
  const milliseconds = parseDuration(value, 'unique', InvalidTaskError);
  if (milliseconds >= 1000) return milliseconds;
  const isSmall = typeof value === 'number' && value > 0;
  const hint = isSmall
    ? `${value} is ${value} milliseconds, give '${value}s'`
    : `unique is ${describe(value)}: give '1s' or more`;
  throw new InvalidTaskError(`Unique TTL cannot be less than 1s; ${hint}`);
}

function time(value: unknown, option: string): number {
  if (!types.isDate(value) || Number.isNaN(value.getTime())) {
    throw new InvalidTaskError(`${option} must be a valid Date, not ${describe(value)}${dateHint(value)}`);
  }
  return value.getTime();
}

function dateHint(value: unknown): string {
  if (typeof value !== 'number' && typeof value !== 'string') return '';
  if (Number.isNaN(new Date(value).getTime())) return '; for a time from now on give processIn, timeout or expiresIn';
  return `; give new Date(${describe(value)})`;
}

/** 0 means "none" on the wire, so times up to the first second of 1970 cannot be a deadline. */
function deadline(value: unknown): number {
  const seconds = floorSeconds(time(value, 'deadline'));
  if (seconds > 0) return seconds;
  throw new InvalidTaskError(`deadline must be later than 1970-01-01T00:00:01Z, not ${describe(value)}`);
}

function mergeHeaders(base: TaskSettings['headers'], value: unknown): TaskSettings['headers'] {
  const headers = requirePlainObject(value, 'headers', InvalidTaskError);
  for (const [key, text] of Object.entries(headers)) {
    if (typeof text !== 'string') {
      throw new InvalidTaskError(`header "${key}" must be a string, not ${describe(text)}; encode it, or leave it out`);
    }
  }
  const merged = { ...base, ...(headers as Record<string, string>) };
  return Object.keys(merged).length === 0 ? undefined : merged;
}
