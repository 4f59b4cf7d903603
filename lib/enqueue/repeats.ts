import { createHash } from 'node:crypto';
import type { Repeat, RepeatPolicy } from '../broker/uniqueness.js';
import { ceilSeconds } from '../clock.js';
import { InvalidTaskError } from '../errors.js';
import type { KeyFunction } from '../task/links.js';
import { readKey } from '../task/link-settings.js';
import { isPlainRepeat } from '../task/repeat-checks.js';
import type { RepeatSettings } from '../task/repeats.js';
import { describe } from '../validation.js';
import type { QueueKeys } from '../wire/keys.js';
import type { TaskMessage } from '../wire/message.js';
import { UNIQUE_UNTIL_HEADER, UNTIL_STARTED } from '../wire/unique-until.js';
import type { PreparedTask } from './prepared-task.js';

/** The locks of `debounce`, `latest` and `supersede` only say which task is the last: asynq keeps no task longer in its archive. */
const LAST_SECONDS = 90 * 86_400;
/** How long a task waits at the latest for the one that it follows. */
const FOLLOW_SECONDS = 7 * 86_400;

/** The business id of a task: a text, or found in its payload. */
export type Key = string | KeyFunction<never>;

/** What the option about repeats makes of a request. */
export interface Repeating {
  /** The lock that the success of the task frees; empty: none. */
  readonly uniqueKey: string;
  /** Seconds of asynq's lock; `undefined`: the task has a policy of ours. */
  readonly uniqueTtl: number | undefined;
  /** `undefined`: one is made. */
  readonly id: string | undefined;
  /** Seconds, at least. */
  readonly retention: number;
  readonly headers: TaskMessage['headers'];
  /** `undefined`: it is enqueued like any unique task. */
  readonly repeat: Repeat | undefined;
}

/** For tasks that are created with others. @param remedy what leaves the option out; default: leave it out. @throws InvalidTaskError */
export function refuseRepeat({ request, repeats }: PreparedTask, what: string, remedy = 'leave it out'): void {
  if (!repeats) return;
  throw new InvalidTaskError(
    `${what} cannot have ${repeats}, which task "${request.message.type}" has; ${remedy}, or use a plain unique time`,
  );
}

/** What is known of a task when its request is made. */
export interface RepeatContext {
  readonly payload: unknown;
  /** The payload, encoded. */
  readonly bytes: Buffer | undefined;
  /** Of its queue. */
  readonly keys: QueueKeys;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** When it may run, in milliseconds since the epoch. */
  readonly delayedTo: number | undefined;
}

/** @throws InvalidTaskError when the key or a field of the payload cannot be found */
export function repeating(
  type: string,
  key: Key | undefined,
  settings: RepeatSettings,
  context: RepeatContext,
): Repeating {
  const { policy, time, option, until } = settings;
  const { now, payload, delayedTo = now } = context;
  if (policy === 'once') {
    const id = onceId(type, keyOf(type, key!, payload));
    const repeat = { policy, lock: '', ttl: 0, limit: undefined };
    return { uniqueKey: '', uniqueTtl: undefined, id, retention: ceilSeconds(time), headers: undefined, repeat };
  }
  const lock = lockOf(type, key, settings, context);
  const delay = delayedTo - now;
  if (isLast(policy)) {
    const ttl = ceilSeconds(delay) + LAST_SECONDS;
    const repeat = { policy, lock, ttl, limit: limitOf(settings, now) };
    return { uniqueKey: lock, uniqueTtl: undefined, id: undefined, retention: 0, headers: undefined, repeat };
  }
  const ttl = ceilSeconds(option === 'throttle' ? time : delay + time);
  // Go and our servers free a lock that a message names, when its task succeeds.
  const uniqueKey = until === 'expired' ? '' : lock;
  const headers = until === 'started' ? STARTED : undefined;
  const isPlain = isPlainRepeat(settings);
  const repeat = isPlain ? undefined : { policy, lock, ttl, limit: undefined };
  return { uniqueKey, uniqueTtl: isPlain ? ttl : undefined, id: undefined, retention: 0, headers, repeat };
}

const onceId = (type: string, key: string): string => `${idText(type)}~once~${idText(key)}`;

/** How a task is known by its key: by its id, or by a lock that it holds. `undefined`: tasks of these settings are not. */
export function byKey(
  type: string,
  key: string,
  settings: RepeatSettings | undefined,
  keys: QueueKeys,
): { readonly id: string; readonly lock?: undefined } | { readonly lock: string; readonly id?: undefined } | undefined {
  if (settings?.policy === 'once') return { id: onceId(type, key) };
  if (!settings || typeof settings.by === 'object' || settings.by === 'payload') return undefined;
  return { lock: keys.lock(type, isLast(settings.policy) ? 'last' : 'key', [key]) };
}

/** For the server, which frees the lock. */
const STARTED = { [UNIQUE_UNTIL_HEADER]: UNTIL_STARTED };

function limitOf({ policy, maxWait }: RepeatSettings, now: number): number | undefined {
  if (policy === 'latest') return ceilSeconds(now) + FOLLOW_SECONDS;
  return policy === 'debounce' && maxWait !== undefined ? ceilSeconds(now + maxWait) : undefined;
}

/** Text as part of an id that asynq's tools can put into a URL: two texts have two ids. */
const idText = (text: string): string =>
  text.replace(/[^A-Za-z0-9._:-]/gu, (char) =>
    Array.from(Buffer.from(char), (byte) => `=${byte.toString(16).padStart(2, '0')}`).join(''),
  );

/** Such a lock only says which task is the last. */
const isLast = (policy: RepeatPolicy): boolean =>
  policy === 'debounce' || policy === 'latest' || policy === 'supersede';

function lockOf(
  type: string,
  key: Key | undefined,
  { by, policy }: RepeatSettings,
  { payload, bytes, keys }: RepeatContext,
): string {
  if (typeof by === 'object') return keys.lock(type, 'fields', [...by, fieldsOf(type, by, payload)]);
  if (by === 'payload' || key === undefined) return keys.unique(type, bytes);
  return keys.lock(type, isLast(policy) ? 'last' : 'key', [keyOf(type, key, payload)]);
}

const keyOf = (type: string, key: Key, payload: unknown): string =>
  typeof key === 'string' ? key : readKey(key, payload, `key of task "${type}"`);

/** A hash of some fields of a payload, as they are in JSON. */
function fieldsOf(type: string, names: readonly string[], payload: unknown): string {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload) || ArrayBuffer.isView(payload)) {
    throw new InvalidTaskError(
      `unique of task "${type}" compares fields of the payload, which is ${describe(payload)}; use by: 'payload'`,
    );
  }
  const values = names.map((name) => {
    const value = (payload as Readonly<Record<string, unknown>>)[name];
    if (value !== undefined) return value;
    throw new InvalidTaskError(`unique of task "${type}" compares "${name}", which its payload does not have`);
  });
  return createHash('sha256').update(JSON.stringify(values, sorted)).digest('base64url');
}

/** Objects with their names in order. */
function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
