import { InvalidOptionError } from '../../errors.js';
import { describe, isBlank, rejectUnknownKeys, requireObject } from '../../validation.js';

/** Stands in place of what is hidden. */
export const REDACTED = '[redacted]';

export interface RedactionRule {
  /** How the task's type begins: `user:` means `user:created`, too. Empty: every type. */
  readonly type: string;
  /**
   * Fields of payload and result: `password`, `card.number`, `items.*.secret` (any key or index), `**.token` (at any depth).
   * Upper and lower case count as the same, and lists need no `*`. Default: all of it.
   */
  readonly fields?: readonly string[];
  /** Names of headers. Default: none. */
  readonly headers?: readonly string[];
}

/** Answers what of a task is hidden: `true` for all of its payload and result, paths of fields, or `false` for nothing. */
export type RedactionFunction = (task: {
  readonly type: string;
  readonly queue: string;
}) => boolean | readonly string[] | undefined;

export type Redaction = readonly RedactionRule[] | RedactionFunction;

/** What is hidden of one kind of tasks. */
export interface Hidden {
  /** `undefined`: everything. */
  readonly paths: readonly (readonly string[])[] | undefined;
  readonly headers: ReadonlySet<string>;
}

const PATH = /^[^.]+(\.[^.]+)*$/;

/** @throws InvalidOptionError */
export function checkRedaction(redaction: unknown): Redaction {
  if (typeof redaction === 'function') return redaction as RedactionFunction;
  const what = 'AsynqDashboardModule option redact';
  if (!Array.isArray(redaction))
    throw new InvalidOptionError(`${what} must be an array of rules, or a function, not ${describe(redaction)}`);
  for (const [index, given] of redaction.entries()) {
    const rule = requireObject(given, `${what}[${index}]`, InvalidOptionError) as Partial<RedactionRule>;
    rejectUnknownKeys(rule, ['type', 'fields', 'headers'], `key of ${what}[${index}]`, InvalidOptionError);
    if (typeof rule.type !== 'string') {
      throw new InvalidOptionError(`${what}[${index}].type must be how a task type begins, not ${describe(rule.type)}`);
    }
    checkNames(rule.fields, `${what}[${index}].fields`, (name) => PATH.test(name));
    checkNames(rule.headers, `${what}[${index}].headers`, (name) => !isBlank(name));
  }
  return redaction as RedactionRule[];
}

function checkNames(names: unknown, what: string, fits: (name: string) => boolean): void {
  if (names === undefined) return;
  if (Array.isArray(names) && names.length > 0 && names.every((name) => typeof name === 'string' && fits(name))) return;
  throw new InvalidOptionError(`${what} must be an array of names such as "password" or "items.*.secret"`);
}

const toPaths = (fields: readonly string[]): string[][] => fields.map((field) => field.toLowerCase().split('.'));
const NO_HEADERS: ReadonlySet<string> = new Set();

/** What is hidden of such a task; `undefined`: nothing. */
export function hiddenOf(redaction: Redaction, task: { type: string; queue: string }): Hidden | undefined {
  if (typeof redaction === 'function') return askFunction(redaction, task);
  const rules = redaction.filter(({ type }) => task.type.startsWith(type));
  if (rules.length === 0) return undefined;
  const headers = new Set(rules.flatMap((rule) => rule.headers ?? []).map((name) => name.toLowerCase()));
  // A rule of headers alone hides no fields.
  const ofFields = rules.filter((rule) => rule.fields !== undefined || rule.headers === undefined);
  if (ofFields.some((rule) => rule.fields === undefined)) return { paths: undefined, headers };
  return { paths: toPaths(ofFields.flatMap((rule) => rule.fields ?? [])), headers };
}

/** One that fails hides everything. */
function askFunction(
  redaction: RedactionFunction,
  { type, queue }: { type: string; queue: string },
): Hidden | undefined {
  let answer: ReturnType<RedactionFunction>;
  try {
    answer = redaction({ type, queue });
  } catch {
    answer = true;
  }
  if (!answer) return undefined;
  return { paths: Array.isArray(answer) ? toPaths(answer) : undefined, headers: NO_HEADERS };
}

/** A copy without what the paths lead to; what was taken out is added to `secrets`. */
export function mask(value: unknown, { paths }: Pick<Hidden, 'paths'>, secrets: Set<string>): unknown {
  if (paths !== undefined) return maskPaths(value, paths, secrets);
  collect(value, secrets);
  return REDACTED;
}

function maskPaths(value: unknown, paths: readonly (readonly string[])[], secrets: Set<string>): unknown {
  if (typeof value !== 'object' || value === null || paths.length === 0) return value;
  // A path without a `*` for a list means each of its members.
  if (Array.isArray(value)) {
    return value.map((part, index) => maskPart(part, [...paths, ...stepInto(paths, String(index))], secrets));
  }
  const entries = Object.entries(value).map(([key, part]) => [key, maskPart(part, stepInto(paths, key), secrets)]);
  return Object.fromEntries(entries) as object;
}

function maskPart(part: unknown, paths: readonly (readonly string[])[], secrets: Set<string>): unknown {
  if (!paths.some((path) => path.length === 0)) return maskPaths(part, paths, secrets);
  collect(part, secrets);
  return REDACTED;
}

/** What is left of the paths below a key; empty for one that ends here. */
function stepInto(paths: readonly (readonly string[])[], key: string): string[][] {
  const name = key.toLowerCase();
  return paths.flatMap((path) => {
    const [first, ...rest] = path as [string, ...string[]];
    if (first === '**') return rest.length === 0 ? [[]] : [[...path], ...stepInto([rest], key)];
    return first === '*' || first === name ? [rest] : [];
  });
}

/** Shorter ones are in every other word. */
const SHORTEST_SECRET = 3;

function collect(value: unknown, secrets: Set<string>): void {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) collect(part, secrets);
  } else if (typeof value === 'string' || typeof value === 'number') {
    const secret = String(value);
    if (secret.length >= SHORTEST_SECRET) secrets.add(secret);
  }
}

/** A text without the secrets it repeats, also where they are written as in JSON or in an address. */
export function scrub(text: string, secrets: ReadonlySet<string>): string {
  let clean = text;
  const spellings = [...secrets].flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encode(secret)]);
  for (const spelling of spellings.sort((a, b) => b.length - a.length)) clean = clean.replaceAll(spelling, REDACTED);
  return clean;
}

const encode = (secret: string): string => encodeURIComponent(secret.replace(/\p{Surrogate}/gu, '\ufffd'));
