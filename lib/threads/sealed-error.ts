import { inspect } from 'node:util';
import * as errors from '../errors.js';

/** How deep causes are kept. */
const MAX_CAUSES = 8;
const MAX_TEXT = 4_096;

/** An error on its way between threads: a copy would lose its class, its code and its cause. */
export interface SealedError {
  /** `undefined`: no Error was thrown. */
  readonly name: string | undefined;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly cause?: SealedError | undefined;
  /** Its own fields of simple values, or what was thrown. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export function seal(error: unknown, depth = 0): SealedError {
  if (!(error instanceof Error)) return { name: undefined, message: '', fields: { thrown: simple(error) } };
  const { message, stack, cause } = error;
  return {
    name: nameOf(error),
    message: String(message),
    stack: typeof stack === 'string' ? stack : undefined,
    cause: cause === undefined || depth >= MAX_CAUSES ? undefined : seal(cause, depth + 1),
    fields: fieldsOf(error),
  };
}

/** An error of the same class, where it is one of ours or of JavaScript; else an Error with the name of its class. */
export function unseal({ name, message, stack, cause, fields }: SealedError): unknown {
  if (name === undefined) return fields['thrown'];
  const error = new Error(message, cause && { cause: unseal(cause) });
  const prototype = prototypeOf(name);
  if (prototype) Object.setPrototypeOf(error, prototype);
  Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true, enumerable: false });
  if (stack !== undefined) error.stack = stack;
  return Object.assign(error, fields);
}

/** Classes of applications seldom set the name. */
const nameOf = (error: Error): string =>
  error.name === 'Error' && error.constructor.name !== '' ? error.constructor.name : String(error.name);

function fieldsOf(error: Error): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const key of Object.keys(error)) {
    if (key === 'name' || key === 'stack' || key === 'message' || key === 'cause') continue;
    const value: unknown = Reflect.get(error, key);
    if (isSimple(value)) fields[key] = value;
  }
  return fields;
}

const isSimple = (value: unknown): boolean => value === null || ['string', 'number', 'boolean'].includes(typeof value);

function simple(value: unknown): unknown {
  if (value === undefined || isSimple(value)) return value;
  return inspect(value, { depth: 2, maxStringLength: MAX_TEXT, breakLength: Infinity }).slice(0, MAX_TEXT);
}

function prototypeOf(name: string): object | undefined {
  const found: unknown = Reflect.get(errors, name) ?? Reflect.get(globalThis, name);
  const prototype = typeof found === 'function' ? (found.prototype as unknown) : undefined;
  return prototype instanceof Error ? prototype : undefined;
}
