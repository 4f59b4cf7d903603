import { createHash } from 'node:crypto';
import type { EnqueueRequest } from '../broker/enqueue-request.js';
import type { Repeat, RepeatPolicy, RepeatRequest } from '../broker/uniqueness.js';
import { ceilSeconds } from '../clock.js';
import { InvalidTaskError } from '../errors.js';
import type { KeyFunction } from '../task/links.js';
import { readKey } from '../task/link-settings.js';
import { isPlainRepeat } from '../task/repeat-checks.js';
import type { RepeatName, RepeatSettings } from '../task/repeats.js';
import { describe } from '../validation.js';
import type { QueueKeys } from '../wire/keys.js';
import type { TaskMessage } from '../wire/message.js';
import { UNIQUE_UNTIL_HEADER, UNTIL_STARTED } from '../wire/unique-until.js';
import { prepared, type PreparedTask } from './prepared-task.js';

/** The locks of `debounce`, `latest` and `supersede` only say which task is the last: asynq keeps no task longer in its archive. */
const LAST_SECONDS = 90 * 86_400;
/** How long a task waits at the latest for the one that it follows. */
const FOLLOW_SECONDS = 7 * 86_400;

/** The business id of a task: a text, or found in its payload. */
export type Key = string | KeyFunction<never>;

/** A request with the lock of its task, and how to enqueue it. */
export interface Repeating {
  readonly request: EnqueueRequest;
  /** `undefined`: it is enqueued like any unique task. */
  readonly repeat: Repeat | undefined;
}

/** A task of a transaction with an outbox, for messages. */
export const A_ROW = 'a row of an outbox';

/** For tasks that are created with others. @throws InvalidTaskError */
export function refuseRepeat({ request, repeats }: PreparedTask, what: string): void {
  if (!repeats) return;
  throw new InvalidTaskError(
    `${what} cannot have ${repeats}, which task "${request.message.type}" has; leave it out, or use a plain unique time`,
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
  request: EnqueueRequest,
  { type, key }: { readonly type: string; readonly key: Key | undefined },
  repeat: RepeatSettings,
  context: RepeatContext,
): Repeating {
  const { policy, time, option } = repeat;
  const { now, payload } = context;
  if (policy === 'once') return onceOf(request, time, keyOf(type, key!, payload));
  const lock = lockOf(type, key, repeat, context);
  const delay = (context.delayedTo ?? now) - now;
  if (isPlainRepeat(repeat)) {
    return { request: { ...locked(request, lock, repeat), uniqueTtl: ceilSeconds(delay + time) }, repeat: undefined };
  }
  if (isLast(policy)) {
    const ttl = ceilSeconds(delay) + LAST_SECONDS;
    const named = { ...request, message: { ...request.message, uniqueKey: lock } };
    return { request: named, repeat: { policy, lock, ttl, limit: limitOf(repeat, now) } };
  }
  const ttl = ceilSeconds(option === 'throttle' ? time : delay + time);
  return { request: locked(request, lock, repeat), repeat: { policy, lock, ttl } };
}

/** A task that is enqueued with its policy. */
export function repeated(
  request: EnqueueRequest,
  repeat: Repeat,
  option: RepeatName,
  now: number,
  delayedTo: number | undefined,
): PreparedTask {
  const made: RepeatRequest = { ...request, repeat };
  return { ...prepared(made, now, delayedTo), repeats: option };
}

function limitOf({ policy, maxWait }: RepeatSettings, now: number): number | undefined {
  if (policy === 'latest') return ceilSeconds(now) + FOLLOW_SECONDS;
  return policy === 'debounce' && maxWait !== undefined ? ceilSeconds(now + maxWait) : undefined;
}

/** Go and our servers free a lock that a message names, when its task succeeds. */
function locked(request: EnqueueRequest, lock: string, { until }: RepeatSettings): EnqueueRequest {
  const { message } = request;
  if (until === 'expired') return request;
  if (until === 'succeeded') return { ...request, message: { ...message, uniqueKey: lock } };
  const headers = { ...message.headers, [UNIQUE_UNTIL_HEADER]: UNTIL_STARTED };
  return { ...request, message: { ...message, uniqueKey: lock, headers } };
}

function onceOf(request: EnqueueRequest, time: number, key: string): Repeating {
  const { message } = request;
  const once: TaskMessage = {
    ...message,
    id: `${idText(message.type)}~once~${idText(key)}`,
    retention: Math.max(message.retention, ceilSeconds(time)),
  };
  return { request: { ...request, message: once, madeId: false }, repeat: { policy: 'once', lock: '', ttl: 0 } };
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
  if (typeof by === 'object') return keys.lock(type, 'fields', `${by.join(',')}:${fieldsOf(type, by, payload)}`);
  if (by === 'payload' || key === undefined) return keys.unique(type, bytes);
  return keys.lock(type, isLast(policy) ? 'last' : 'key', keyOf(type, key, payload));
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
  return createHash('md5').update(JSON.stringify(values, sorted)).digest('hex');
}

/** Objects with their names in order. */
function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
