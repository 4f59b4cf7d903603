import type { ExpiryPolicy } from '../../wire/expiry.js';
import type { TaskOptions } from '../../task/options.js';
import { describe } from '../../validation.js';
import { BadRequest } from './api-error.js';
import { PAYLOAD_FIELDS, type PayloadBody } from './payload-body.js';
import { amount, count, mapOf, oneOf, type Schema, text, time } from './schema.js';

const EXPIRY_POLICIES: readonly ExpiryPolicy[] = ['archive', 'drop'];

/** The options of a task in a body. */
export const TASK_FIELDS: Readonly<Record<string, Schema>> = {
  ...PAYLOAD_FIELDS,
  type: text(),
  task_id: text('default: a UUID'),
  max_retry: count(),
  timeout_seconds: amount('of one attempt; 0, as if not given: 30 minutes, unless there is a deadline'),
  deadline: time(),
  expires_in_seconds: amount('from when it may run until when its first attempt must begin; 0: it does not expire'),
  on_expiry: oneOf(EXPIRY_POLICIES, 'what becomes of it if it has not begun by then; default `archive`'),
  unique_seconds: amount('how long another of this type and payload is refused'),
  process_at: time('not before this time; excludes process_in_seconds'),
  process_in_seconds: amount(),
  retention_seconds: amount('how long it is kept after success'),
  group: text(),
  headers: mapOf(text()),
};

export interface TaskBody extends PayloadBody {
  readonly type?: string;
  readonly task_id?: string;
  readonly max_retry?: number;
  readonly timeout_seconds?: number;
  readonly deadline?: string;
  readonly expires_in_seconds?: number;
  readonly on_expiry?: ExpiryPolicy;
  readonly unique_seconds?: number;
  readonly process_at?: string;
  readonly process_in_seconds?: number;
  readonly retention_seconds?: number;
  readonly group?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** @throws BadRequest for an invalid time; the client checks the rest */
export function readOptions(body: TaskBody): TaskOptions {
  return {
    taskId: body.task_id,
    maxRetry: body.max_retry,
    timeout: milliseconds(body.timeout_seconds),
    deadline: toDate(body.deadline, 'deadline'),
    expiresIn: milliseconds(body.expires_in_seconds),
    onExpiry: body.on_expiry,
    unique: milliseconds(body.unique_seconds),
    processAt: toDate(body.process_at, 'process_at'),
    processIn: milliseconds(body.process_in_seconds),
    retention: milliseconds(body.retention_seconds),
    group: body.group,
    headers: body.headers,
  };
}

/** The options of the body replace those of `base`. */
export const overlay = (base: TaskOptions, options: TaskOptions): TaskOptions => ({
  ...base,
  ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
});

const milliseconds = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : seconds * 1000;

/** With a time zone: clients do not know the server's. */
const RFC_3339 = /^(\d{4}-\d\d-\d\d)[Tt ](?!24)\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$/;

/** Whether the day exists: JavaScript takes February 30 for March 1. */
function isDay(day: string): boolean {
  const midnight = new Date(day === '' ? NaN : `${day}T00:00:00Z`);
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
}

/** @throws BadRequest */
export function toDate(given: string | undefined, name: string): Date | undefined {
  if (given === undefined) return undefined;
  const [, day = ''] = RFC_3339.exec(given) ?? [];
  const date = new Date(isDay(day) ? given : NaN);
  if (!Number.isNaN(date.getTime())) return date;
  throw new BadRequest(`${name} is ${describe(given)}; give a time such as "2030-01-31T12:00:00Z"`);
}
