import { formatGoDuration, millisecondsOf, nanosecondsOf, parseGoDuration } from './go-duration.js';
import { goQuote, goUnquote } from './go-quote.js';
import { formatUnixDate, parseUnixDate } from './go-time.js';

/**
 * One option of an enqueue, as scheduler entries publish it (wire-protocol section 3.1). Durations
 * are milliseconds and may have a fraction.
 */
export type EnqueueOption =
  | { readonly name: 'MaxRetry'; readonly value: number }
  | { readonly name: 'Queue' | 'TaskID' | 'Group'; readonly value: string }
  | { readonly name: 'Timeout' | 'Unique' | 'ProcessIn' | 'Retention'; readonly value: number }
  | { readonly name: 'Deadline' | 'ProcessAt'; readonly value: Date }
  /** Ours: Go's readers drop them. */
  | { readonly name: 'ExpiresIn'; readonly value: number }
  | { readonly name: 'OnExpiry'; readonly value: string }
  | { readonly name: 'Header'; readonly value: readonly [key: string, value: string] };

/**
 * The text of an option, as Go's `String()` writes it; times are in UTC. Go's readers drop
 * `TaskID`, `Group` and options whose text contains a `)`.
 *
 * @throws InvalidOptionError when a date is invalid
 */
export function formatOption(option: EnqueueOption): string {
  return `${option.name}(${formatArgument(option)})`;
}

function formatArgument(option: EnqueueOption): string {
  switch (option.name) {
    case 'MaxRetry':
      return String(Math.max(0, option.value));
    case 'Queue':
    case 'TaskID':
    case 'Group':
    case 'OnExpiry':
      return goQuote(option.value);
    case 'Timeout':
    case 'Unique':
    case 'ProcessIn':
    case 'Retention':
    case 'ExpiresIn':
      return formatGoDuration(nanosecondsOf(option.value));
    case 'Deadline':
    case 'ProcessAt':
      return formatUnixDate(option.value);
    case 'Header':
      return goJson(option.value);
  }
}

/** JSON as Go's encoder writes it: safe inside HTML, no lone surrogates. */
function goJson(value: readonly string[]): string {
  const wellFormed = value.map((text) => text.replace(/\p{Surrogate}/gu, '\ufffd'));
  return JSON.stringify(wellFormed).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/**
 * Reads an option like Go (section 7.6): the argument is between the first `(` and the first `)`.
 * `undefined` for what Go drops: `TaskID`, `Group`, unknown names, invalid arguments; also for a
 * text without `(`, on which Go panics.
 */
export function parseOption(text: string): EnqueueOption | undefined {
  const open = text.indexOf('(');
  if (open < 0) return undefined;
  const close = text.indexOf(')');
  const argument = close > open ? text.slice(open + 1, close) : '';
  const name = text.slice(0, open);
  switch (name) {
    case 'Queue':
      return optionOf(name, goUnquote(argument));
    case 'MaxRetry':
      return optionOf(name, parseCount(argument));
    case 'Timeout':
    case 'Unique':
    case 'ProcessIn':
    case 'Retention':
      return optionOf(name, parseMilliseconds(argument));
    case 'Deadline':
    case 'ProcessAt':
      return optionOf(name, parseUnixDate(argument));
    case 'Header':
      return optionOf(name, parsePair(argument));
    default:
      return undefined;
  }
}

function optionOf<N extends EnqueueOption['name'], V>(
  name: N,
  value: V | undefined,
): { name: N; value: V } | undefined {
  return value === undefined ? undefined : { name, value };
}

function parseCount(argument: string): number | undefined {
  const count = /^[+-]?\d+$/.test(argument) ? Number(argument) : NaN;
  return Number.isSafeInteger(count) ? Math.max(0, count) : undefined;
}

function parseMilliseconds(argument: string): number | undefined {
  try {
    return millisecondsOf(parseGoDuration(argument));
  } catch {
    return undefined;
  }
}

/**
 * Go reads into an array of two strings: missing or null ones stay empty, further ones are dropped.
 */
function parsePair(argument: string): readonly [string, string] | undefined {
  const parsed = parseJson(argument);
  if (!Array.isArray(parsed)) return undefined;
  const [key, value] = [parsed[0] ?? '', parsed[1] ?? ''] as [unknown, unknown];
  return typeof key === 'string' && typeof value === 'string' ? [key, value] : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
