/** Deeper values are cut: a decoder may return anything. */
const MAX_DEPTH = 100;

/**
 * A decoded value as plain JSON data: big numbers as text, bytes as `base64:…`, maps as objects.
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
  // fromEntries defines properties, so `__proto__` is an ordinary name.
  return Object.fromEntries(entries.map(([key, part]) => [String(key), plainValue(part, depth + 1)]));
}

/**
 * The same for parsed JSON: returns the value itself unless it is too deep or has a number that
 * JSON cannot represent.
 */
export function plainJson(value: unknown, depth = 0): unknown {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) return '…';
  const inner = (part: unknown): unknown => plainJson(part, depth + 1);
  return Array.isArray(value) ? mapList(value, inner) : mapObject(value, inner);
}

/** Maps the items of a list; returns the list itself if no item changes. Visits each item once. */
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
  // fromEntries defines properties, so `__proto__` is an ordinary name.
  return Object.fromEntries(entries) as object;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONG = /\d{16}/;

/**
 * Parses JSON, with integers beyond JavaScript's range (such as ids of 19 digits) as text.
 *
 * @throws SyntaxError
 */
export function parseExactly(text: string): unknown {
  if (!LONG.test(text)) return JSON.parse(text);
  JSON.parse(text); // parsed as it is first, so that the position in a syntax error is right
  return JSON.parse(text.replace(TOKEN, (token) => (isUnsafe(token) ? `"${token}"` : token)));
}

const isUnsafe = (token: string): boolean => /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token));
