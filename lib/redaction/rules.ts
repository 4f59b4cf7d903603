import { InvalidOptionError } from '../errors.js';
import { describe, isBlank, rejectUnknownKeys, requireObject } from '../validation.js';

/** Replaces what is hidden. */
export const REDACTED = '[redacted]';

/**
 * What is hidden of a task. Without `fields` and `headers` everything is: payload, result and all
 * headers.
 */
export interface RedactedParts {
  /**
   * Fields of payload and result: `password`, `card.number`, `items.*.secret` (any key or index),
   * `**.token` (at any depth). Case, `_` and `-` make no difference, and lists need no `*`.
   * Default: none if there are `headers`, else all.
   */
  readonly fields?: readonly string[];
  /**
   * Names of headers, compared like those of fields; `*` is every header. Default: none if there
   * are `fields`, else all.
   */
  readonly headers?: readonly string[];
  /**
   * Whether the whole text of errors is hidden, too: handlers often quote what they work on.
   * Default `hide`. With `show` it stays as it is.
   */
  readonly errors?: 'hide' | 'show';
}

export interface RedactionRule extends RedactedParts {
  /** A prefix of the type: `user:` applies to `user:created`, too. Empty: every type. */
  readonly type: string;
}

/**
 * Returns what is hidden of a task: `true` for everything, paths of fields, or
 * {@link RedactedParts}; `false` or `undefined` for nothing. When it throws or returns anything
 * else, everything is hidden.
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
    throw new InvalidOptionError(`${what}.type must be the beginning of a task type, not ${describe(rule.type)}`);
  }
  checkParts(rule, what);
}

/** @throws InvalidOptionError */
function checkParts({ fields, headers, errors }: Partial<RedactedParts>, what: string): void {
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

/** What the function hides of a task; any result that is not valid hides everything. */
export function callFunction(
  redaction: RedactionFunction,
  { type, queue }: { readonly type: string; readonly queue: string },
): RedactedParts | undefined {
  try {
    return readResult(redaction({ type, queue }));
  } catch {
    return EVERYTHING;
  }
}

/** @throws when the result is not valid */
function readResult(returned: unknown): RedactedParts | undefined {
  if (returned === false || returned === undefined || returned === null) return undefined;
  if (returned === true) return EVERYTHING;
  // Nothing awaits it, and its rejection would end the process.
  if (returned instanceof Promise) returned.catch(() => {});
  if (Array.isArray(returned) && returned.length === 0) return undefined;
  const parts = Array.isArray(returned) ? { fields: returned as string[] } : (returned as RedactedParts);
  rejectUnknownKeys(requireObject(parts, 'redact', InvalidOptionError), PARTS, 'key', InvalidOptionError);
  checkParts(parts, 'redact');
  return parts;
}
