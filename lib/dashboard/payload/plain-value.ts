/** Deeper than this nothing is shown: a decoder may answer anything. */
const MAX_DEPTH = 100;

/**
 * What a decoder answered as plain JSON data: big numbers as text with all their digits, bytes as `base64:…`, maps as objects. Keys
 * of any name stay keys.
 */
export function plainValue(value: unknown, depth = 0): unknown {
  if (depth > MAX_DEPTH && typeof value === 'object' && value !== null) return '…';
  switch (typeof value) {
    case 'bigint':
      return String(value);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'object':
      return value === null ? null : plainObject(value, depth);
    case 'string':
    case 'boolean':
      return value;
    default:
      return undefined;
  }
}

function plainObject(value: object, depth: number): unknown {
  if (ArrayBuffer.isView(value)) {
    return `base64:${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')}`;
  }
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (Array.isArray(value) || value instanceof Set)
    return [...value].map((part) => plainValue(part, depth + 1) ?? null);
  const entries = value instanceof Map ? [...value.entries()] : Object.entries(value);
  // fromEntries defines properties, so that `__proto__` is a name like any other.
  return Object.fromEntries(entries.map(([key, part]) => [String(key), plainValue(part, depth + 1)]));
}

/** The same for what JSON.parse made: the value itself, unless it is too deep or has a number that JSON cannot write. */
export function plainJson(value: unknown, depth = 0): unknown {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) return '…';
  const inner = (part: unknown): unknown => plainJson(part, depth + 1);
  return Array.isArray(value) ? mapList(value, inner) : mapObject(value, inner);
}

/** The list with its members changed; the list itself where none is. Each is visited once, however deep the change is. */
export function mapList(list: readonly unknown[], change: (part: unknown, index: number) => unknown) {
  let copy: unknown[] | undefined;
  for (const [index, part] of list.entries()) {
    const changed = change(part, index);
    if (changed !== part) (copy ??= [...list])[index] = changed;
  }
  return copy ?? list;
}

/** The same for the fields of an object. */
export function mapObject(object: object, change: (part: unknown, key: string) => unknown): object {
  const changes = new Map<string, unknown>();
  for (const key of Object.keys(object)) {
    const part = (object as Readonly<Record<string, unknown>>)[key];
    const changed = change(part, key);
    if (changed !== part) changes.set(key, changed);
  }
  if (changes.size === 0) return object;
  const entries = Object.entries(object).map(([key, part]) => [key, changes.has(key) ? changes.get(key) : part]);
  // fromEntries defines properties, so that `__proto__` is a name like any other.
  return Object.fromEntries(entries) as object;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONG = /\d{16}/;

/** JSON in which whole numbers that JavaScript cannot hold (ids of 19 digits, say) come as text, digit by digit. @throws SyntaxError */
export function parseExactly(text: string): unknown {
  if (!LONG.test(text)) return JSON.parse(text);
  JSON.parse(text); // refused here, where what is wrong can still be found in it
  return JSON.parse(text.replace(TOKEN, (token) => (isUnsafe(token) ? `"${token}"` : token)));
}

const isUnsafe = (token: string): boolean => /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token));
