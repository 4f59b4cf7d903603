import type { TaskInput } from '../api/task-types.js';
import { NO_PAYLOAD, type PayloadText, toPayload } from './payload.js';
import { NOW, toTime, type When } from './when.js';

/** The form of a new task: every value as text, as it is typed. */
export interface TaskForm {
  queue: string;
  type: string;
  /** Undefined: the unchanged payload of the cloned task. */
  payload: PayloadText | undefined;
  when: When;
  task_id: string;
  max_retry: string;
  timeout_seconds: string;
  deadline: string;
  expires_in_seconds: string;
  /** Empty: as by default, `archive`. */
  on_expiry: string;
  unique_seconds: string;
  retention_seconds: string;
  group: string;
  /** One per line: `name: value`. */
  headers: string;
}

export const EMPTY_FORM: TaskForm = {
  queue: 'default',
  type: '',
  payload: NO_PAYLOAD,
  when: NOW,
  task_id: '',
  max_retry: '',
  timeout_seconds: '',
  deadline: '',
  expires_in_seconds: '',
  on_expiry: '',
  unique_seconds: '',
  retention_seconds: '',
  group: '',
  headers: '',
};

const NUMBERS = ['max_retry', 'timeout_seconds', 'expires_in_seconds', 'unique_seconds', 'retention_seconds'] as const;
const TEXTS = ['type', 'task_id', 'group', 'on_expiry'] as const;

type Header = readonly [name: string, value: string];

const QUOTED = /^("(?:[^"\\]|\\.)*")\s*:\s*("(?:[^"\\]|\\.)*")$/;

function parseHeader(line: string): Header {
  if (!line.startsWith('"')) {
    const colon = line.indexOf(':');
    if (colon < 1) throw new Error(`“${line}” is not a header: write name: value.`);
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
  }
  try {
    const [, name = '', value = ''] = QUOTED.exec(line) ?? [];
    return [JSON.parse(name) as string, JSON.parse(value) as string];
  } catch {
    throw new Error(`“${line}” is not a header: write name: value, or both as JSON: "name": "value".`);
  }
}

/**
 * Lines of `name: value`, or of `"name": "value"` in JSON. Throws for any other line, or a repeated
 * name.
 */
export function parseHeaders(text: string): Record<string, string> {
  const lines = text.split('\n').map((line) => line.trim());
  const headers = new Map<string, string>();
  for (const [name, value] of lines.filter((line) => line !== '').map(parseHeader)) {
    if (headers.has(name)) throw new Error(`The header “${name}” is repeated.`);
    headers.set(name, value);
  }
  return Object.fromEntries(headers);
}

/**
 * As JSON if the plain form would be read differently: with line breaks, outer blanks, or a colon
 * in the name.
 */
function printHeader([name, value]: Header): string {
  const plain = `${name}: ${value}`;
  const isPlain =
    /^[^\s:"][^:]*$/.test(name) && !/\p{Cc}/u.test(plain) && [name, value].every((one) => one === one.trim());
  return isPlain ? plain : `${JSON.stringify(name)}: ${JSON.stringify(value)}`;
}

export const printHeaders = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers).map(printHeader).join('\n');

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error(`${name.replace('_', ' ')}: “${text}” is not a number.`);
  return value;
}

/** The request body: what differs from `before`. Throws when a value is invalid. */
export function toInput(form: TaskForm, before: TaskForm = EMPTY_FORM): TaskInput {
  const input: TaskInput = toTime(form.when);
  for (const name of TEXTS) if (form[name] !== before[name]) input[name] = form[name];
  for (const name of NUMBERS) {
    if (form[name].trim() !== '' && form[name] !== before[name]) input[name] = numberOf(name, form[name]);
  }
  if (form.deadline !== '' && form.deadline !== before.deadline) input.deadline = new Date(form.deadline).toISOString();
  if (form.headers !== before.headers) input.headers = parseHeaders(form.headers);
  if (form.payload && JSON.stringify(form.payload) !== JSON.stringify(before.payload)) {
    Object.assign(input, toPayload(form.payload));
  }
  return input;
}
