import type { FieldPosition } from '../../redaction/field-paths.js';
import { REDACTED } from '../../redaction/rules.js';
import { mapList, mapObject, parseExactly, plainJson } from './plain-value.js';

/**
 * Limits failed attempts to parse texts as JSON, because they are slow and a payload may hold many.
 */
const MAX_MISTAKEN_TEXTS = 100;

/**
 * The value without the parts that the paths hide, also within texts that are JSON themselves.
 * Returns the same object if nothing is hidden.
 *
 * @param value plain data, as `plainValue` and `plainJson` return it
 */
export const mask = (value: unknown, place: FieldPosition): unknown => new Mask().of(value, place, 0);

class Mask {
  private mistaken = 0;

  of(value: unknown, place: FieldPosition | undefined, depth: number): unknown {
    if (place === undefined) return value;
    if (place.isHidden) return REDACTED;
    if (typeof value === 'string') return this.ofText(value, place, depth);
    if (typeof value !== 'object' || value === null) return value;
    if (!Array.isArray(value)) return mapObject(value, (part, key) => this.of(part, place.at(key), depth + 1));
    return mapList(value, (part, index) => this.of(part, place.member(index), depth + 1));
  }

  /** A text that is JSON is treated as a part of the value. Any other text stays as it is. */
  private ofText(text: string, place: FieldPosition, depth: number): string {
    if (!OPENING.has(firstOf(text))) return text;
    if (this.mistaken >= MAX_MISTAKEN_TEXTS) return REDACTED;
    const parsed = parseNested(text, depth);
    if (parsed === undefined) {
      this.mistaken++;
      return text;
    }
    const masked = this.of(parsed, place, depth + 1);
    return masked === parsed && showsAll(text, parsed) ? text : JSON.stringify(masked);
  }
}

/** Whether a value has fields, directly or as JSON text. */
export function hasFields(value: unknown): boolean {
  if (typeof value !== 'string') return typeof value === 'object' && value !== null;
  return OPENING.has(firstOf(value)) && hasFields(parseNested(value, 0));
}

const COLON = 0x3a;
/** The first characters of a string, an array and an object. */
const OPENING: ReadonlySet<number> = new Set([0x22, 0x5b, 0x7b]);

function parseNested(text: string, depth: number): unknown {
  try {
    return plainJson(parseExactly(text), depth + 1);
  } catch {
    return undefined;
  }
}

/** The first character from `from` on that is not JSON white space. */
function firstOf(text: string, from = 0): number {
  for (let index = from; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code;
  }
  return 0;
}

/**
 * Whether the value has all keys of the JSON text: repeated keys and values that are too deep are
 * missing in it.
 */
export const showsAll = (text: string, value: unknown): boolean => keysInText(text) === keysInValue(value);

function keysInValue(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const parts: readonly unknown[] = Object.values(value);
  const own = Array.isArray(value) ? 0 : parts.length;
  return parts.reduce<number>((sum, part) => sum + keysInValue(part), own);
}

/** Counts strings followed by a colon. @param text valid JSON */
function keysInText(text: string): number {
  let keys = 0;
  for (let start = text.indexOf('"'); start >= 0;) {
    const end = endOfString(text, start);
    if (firstOf(text, end + 1) === COLON) keys++;
    start = text.indexOf('"', end + 1);
  }
  return keys;
}

function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === '\\') escapes++;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}
