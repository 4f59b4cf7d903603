import { type ErrorClass, InvalidOptionError } from './errors.js';
import type { ForeignNames } from './foreign-names.js';

/** White space by Go's definition: with U+0085 and U+00A0 and without U+FEFF, unlike `trim()`. */
const BLANK = /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/;

/** Whether a text is empty or only white space, as Go defines it (wire-protocol 3.1). */
export function isBlank(text: string): boolean {
  const first = text.charCodeAt(0);
  if (first > 0x20 && first < 0x7f) return false; // nearly every name
  return BLANK.test(text);
}

/** A value as an error message shows it: short, on one line, never throwing. */
export function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (typeof value === 'bigint') return `${value}n`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : value.toISOString();
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'function') return 'a function';
  if (value instanceof Promise) return 'a promise; await it first';
  if (typeof value === 'object' && value !== null) return 'an object';
  return String(value);
}

/**
 * A class that the module makes was made without what it needs: somebody lists it under providers.
 *
 * @throws InvalidOptionError
 */
export function requireMade<T>(needed: T, name: string): T {
  if (needed !== undefined && needed !== null) return needed;
  throw new InvalidOptionError(
    `${name} is made by AsynqModule: leave it out of providers, and import AsynqModule.forRoot there, or once with isGlobal: true`,
  );
}

/** What to add to a message about a definition or class that is `undefined`, where it was to be imported. */
export const circleHint = (value: unknown): string =>
  value === undefined
    ? '; if it is imported, its file and this one import each other (in a circle): move it to a file that imports neither'
    : '';

/** The known name that a mistyped one most likely means; `undefined` when none is near. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = simplify(name);
  let best: string | undefined;
  let bestDistance = Math.ceil(wanted.length / 3) + 1;
  for (const candidate of known) {
    const distance = editDistance(wanted, simplify(candidate));
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

const simplify = (name: string): string => name.replaceAll(/[_-]/g, '').toLowerCase();

/** Counts insertions, deletions, replacements and swaps of neighbours between two names. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = last[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1);
      let cost = Math.min(replaced, last[column]! + 1, current[column - 1]! + 1);
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, beforeLast[column - 2]! + 1);
      }
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length]!;
}

/**
 * Refuses unknown option names, and names the nearest known one.
 *
 * @param what the kind of option, as in `unknown task option "…"`
 * @param foreign what the options of other libraries are called here, by their names
 */
export function rejectUnknownKeys(
  options: object,
  known: readonly string[],
  what: string,
  Failure: ErrorClass,
  foreign: ForeignNames = {},
): void {
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    throw new Failure(`unknown ${what} "${key}"; ${remedyFor(key, known, foreign)}`);
  }
}

function remedyFor(key: string, known: readonly string[], foreign: ForeignNames): string {
  if (Object.hasOwn(foreign, key)) return foreign[key]!;
  const near = nearest(key, known);
  return near ? `did you mean "${near}"?` : `known are ${known.join(', ')}`;
}

/** @throws `Failure` when an option is there that belongs elsewhere */
export function rejectMisplacedKeys(
  options: object,
  elsewhere: readonly string[],
  what: string,
  place: string,
  Failure: ErrorClass,
): void {
  const key = elsewhere.find((name) => Object.hasOwn(options, name));
  if (key !== undefined) throw new Failure(`${what} cannot have ${key} here; give it in ${place}`);
}

/** @throws `Failure` unless the value is an object that can hold named options */
export function requireObject(value: unknown, name: string, Failure: ErrorClass): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new Failure(`${name} must be an object, not ${describe(value)}`);
}

/**
 * For objects whose keys are data: what a Map, a Date or another instance holds is not in its own
 * keys.
 *
 * @throws `Failure` unless the value is an object as `{}`, `JSON.parse` or `Object.create(null)` make it
 */
export function requirePlainObject(value: unknown, name: string, Failure: ErrorClass): object {
  const object = requireObject(value, name, Failure);
  const prototype = Object.getPrototypeOf(object) as object | null;
  // The prototype of plain objects inherits from nothing, also in the realms that Jest makes.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return object;
  throw new Failure(`${name} must be a plain object, not an instance of ${classOf(prototype)}`);
}

function classOf({ constructor }: object): string {
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'a class';
}

/** @throws `Failure` unless the value is a whole number from `least` on (up to `most`) */
export function requireInteger(
  value: unknown,
  name: string,
  Failure: ErrorClass,
  { least = Number.MIN_SAFE_INTEGER, most = Number.MAX_SAFE_INTEGER } = {},
): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? ` of at least ${least}` : ` from ${least} to ${most}`;
  const bounds = least === Number.MIN_SAFE_INTEGER && most === Number.MAX_SAFE_INTEGER ? '' : range;
  throw new Failure(`${name} must be a whole number${bounds}, not ${describe(value)}`);
}

/** @throws `Failure` unless the value is a whole number of at least 1 */
export function requirePositiveInteger(value: unknown, name: string, Failure: ErrorClass): number {
  return requireInteger(value, name, Failure, { least: 1 });
}

/** @throws `Failure` unless the value is text that is not blank, as Go defines it */
export function requireNonBlank(value: unknown, name: string, Failure: ErrorClass): string {
  if (typeof value !== 'string') throw new Failure(`${name} must be a string, not ${describe(value)}`);
  if (isBlank(value)) throw new Failure(`${name} must contain one or more characters that are not white space`);
  return value;
}

/**
 * Refuses braces in a name that becomes part of a key: they delimit the queue, for Redis Cluster
 * too.
 *
 * @param name what the text is, as in `queue name`
 * @throws `Failure`
 */
export function refuseBraces(text: string, name: string, Failure: ErrorClass): string {
  if (!/[{}]/.test(text)) return text;
  throw new Failure(
    `${name} ${describe(text)} has a brace, which marks the end of a queue's name in Redis keys; ` +
      'choose a name without { and }',
  );
}

/** @throws `Failure` unless the value is a function */
export function requireFunction(value: unknown, name: string, Failure: ErrorClass): void {
  if (typeof value !== 'function') throw new Failure(`${name} must be a function, not ${describe(value)}`);
}

/** @throws `Failure` unless the value is an array of Nest guards: classes or instances */
export function requireGuards(value: unknown, name: string, Failure: ErrorClass): void {
  const kind = 'guards: classes or instances with canActivate()';
  if (!Array.isArray(value)) throw new Failure(`${name} must be an array of ${kind}, not ${describe(value)}`);
  const index = value.findIndex((guard) => !isGuard(guard));
  if (index < 0) return;
  throw new Failure(`${name}[${index}] must be one of ${kind}, not ${describe(value[index])}`);
}

function isGuard(guard: unknown): boolean {
  const maker = typeof guard === 'function' ? (guard.prototype as unknown) : guard;
  return typeof (maker as { canActivate?: unknown } | null | undefined)?.canActivate === 'function';
}
