import { InvalidOptionError } from '../errors.js';
import { describe, isBlank, rejectUnknownKeys, requireObject } from '../validation.js';

/** Stands in place of what is hidden. */
export const REDACTED = '[redacted]';

/** What is hidden of a task. Without `fields` and without `headers` it is everything: payload, result and all headers. */
export interface RedactedParts {
  /**
   * Fields of payload and result: `password`, `card.number`, `items.*.secret` (any key or index), `**.token` (at any depth). Upper and
   * lower case, `_` and `-` make no difference, and lists need no `*`. Default: none when there are `headers`, else all.
   */
  readonly fields?: readonly string[];
  /** Names of headers, read like those of fields; `*` is every header. Default: none when there are `fields`, else all. */
  readonly headers?: readonly string[];
  /**
   * Whether the text of errors is hidden, too, whole and whatever it says: handlers like to repeat what they worked on. Default
   * `hide`. With `show` it is left as it was written.
   */
  readonly errors?: 'hide' | 'show';
}

export interface RedactionRule extends RedactedParts {
  /** How the task's type begins: `user:` means `user:created`, too. Empty: every type. */
  readonly type: string;
}

/**
 * Returns what of a task is hidden: `true` for everything, paths of fields, or {@link RedactedParts}; `false` or `undefined` for nothing.
 * When it throws or returns anything else, everything is hidden.
 */
export type RedactionFunction = (task: {
  readonly type: string;
  readonly queue: string;
}) => boolean | readonly string[] | RedactedParts | undefined;

export type Redaction = readonly RedactionRule[] | RedactionFunction;

const PATH = /^[^.]+(\.[^.]+)*$/;
const PARTS = ['fields', 'headers', 'errors'] as const;

/**
 * @param what the option, as in `AsynqModule option redact`
 * @throws InvalidOptionError
 */
export function checkRedaction(redaction: unknown, what: string): Redaction {
  if (typeof redaction === 'function') return checkFunction(redaction, what);
  if (!Array.isArray(redaction)) {
    throw new InvalidOptionError(`${what} must be an array of rules, or a function, not ${describe(redaction)}`);
  }
  for (const [index, rule] of redaction.entries()) checkRule(rule, `${what}[${index}]`);
  return redaction as RedactionRule[];
}

function checkFunction(redaction: object, what: string): RedactionFunction {
  if (redaction.constructor.name !== 'AsyncFunction') return redaction as RedactionFunction;
  throw new InvalidOptionError(`${what} must be a function that returns at once, not an async function`);
}

function checkRule(given: unknown, what: string): void {
  const rule = requireObject(given, what, InvalidOptionError) as Partial<RedactionRule>;
  rejectUnknownKeys(rule, ['type', ...PARTS], `key of ${what}`, InvalidOptionError);
  if (typeof rule.type !== 'string') {
    throw new InvalidOptionError(`${what}.type must be how a task type begins, not ${describe(rule.type)}`);
  }
  checkParts(rule, what);
}

/** @throws InvalidOptionError */
export function checkParts({ fields, headers, errors }: Partial<RedactedParts>, what: string): void {
  checkNames(fields, `${what}.fields`, (name) => PATH.test(name));
  checkNames(headers, `${what}.headers`, (name) => !isBlank(name));
  if (errors === undefined || errors === 'hide' || errors === 'show') return;
  throw new InvalidOptionError(`${what}.errors must be "hide" or "show", not ${describe(errors)}`);
}

function checkNames(names: unknown, what: string, fits: (name: string) => boolean): void {
  if (names === undefined) return;
  if (Array.isArray(names) && names.length > 0 && names.every((name) => typeof name === 'string' && fits(name))) return;
  throw new InvalidOptionError(`${what} must be an array of names such as "password" or "items.*.secret"`);
}

const EVERYTHING: RedactedParts = {};

/** What the function says of a task; all that is no plain statement hides everything. */
export function askFunction(
  redaction: RedactionFunction,
  { type, queue }: { readonly type: string; readonly queue: string },
): RedactedParts | undefined {
  try {
    return readStatement(redaction({ type, queue }));
  } catch {
    return EVERYTHING;
  }
}

/** @throws when it is none */
function readStatement(returned: unknown): RedactedParts | undefined {
  if (returned === false || returned === undefined || returned === null) return undefined;
  if (returned === true) return EVERYTHING;
  // It cannot be waited for, and its rejection would end the process.
  if (returned instanceof Promise) returned.catch(() => {});
  if (Array.isArray(returned) && returned.length === 0) return undefined;
  const parts = Array.isArray(returned) ? { fields: returned as string[] } : (returned as RedactedParts);
  rejectUnknownKeys(requireObject(parts, 'redact', InvalidOptionError), PARTS, 'key', InvalidOptionError);
  checkParts(parts, 'redact');
  return parts;
}
