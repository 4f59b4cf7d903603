import { types } from 'node:util';

/** What JSON does not keep of a payload. */
export interface JsonLoss {
  /** Where: `$` is the payload. */
  readonly path: string;
  /** What is there, and what becomes of it. */
  readonly what: string;
}

/** A larger payload is searched so far: this only warns. */
const MAX_VALUES = 1_000;

/**
 * Finds the first value of a payload that is another one, or gone, after JSON. What throws is not looked for.
 *
 * @param untyped whether a Date is one, too, and text with the JSON of an object: the types of a definition say that they are text
 */
export function findJsonLoss(payload: unknown, untyped: boolean): JsonLoss | undefined {
  if (ArrayBuffer.isView(payload) || types.isAnyArrayBuffer(payload)) return undefined;
  if (typeof payload === 'string')
    return untyped && isJsonOfObject(payload) ? { path: '$', what: JSON_TEXT } : undefined;
  const found = new Set<object>();
  let left = MAX_VALUES;
  const search = (value: unknown, path: string, inArray: boolean): JsonLoss | undefined => {
    if (--left < 0) return undefined;
    const what = lossOf(value, inArray, untyped);
    if (what !== undefined) return { path, what };
    if (typeof value !== 'object' || value === null || found.has(value) || hasToJson(value)) return undefined;
    found.add(value);
    for (const [key, part] of Object.entries(value)) {
      const loss = search(part, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, Array.isArray(value));
      if (loss) return loss;
    }
    return undefined;
  };
  return search(payload, '$', false);
}

const JSON_TEXT = 'JSON as text, which stays text: give the object itself';

function isJsonOfObject(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function lossOf(value: unknown, inArray: boolean, dates: boolean): string | undefined {
  if (typeof value === 'function' || typeof value === 'symbol') return `a ${typeof value}, which is left out`;
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : `${value}, which becomes null`;
  if (value === undefined) return inArray ? 'undefined in an array, which becomes null' : undefined;
  return typeof value === 'object' && value !== null ? lossOfObject(value, dates) : undefined;
}

function lossOfObject(value: object, dates: boolean): string | undefined {
  if (types.isMap(value)) return 'a Map, which becomes {}: give its entries as an array';
  if (types.isSet(value)) return 'a Set, which becomes {}: give its values as an array';
  if (types.isNativeError(value)) return 'an Error, which loses its message: give its text';
  if (types.isRegExp(value)) return 'a RegExp, which becomes {}: give its source';
  if (types.isPromise(value)) return 'a promise, which becomes {}: await it first';
  if (types.isDate(value))
    return dates ? 'a Date, which becomes text: new Date(text) in the handler makes one' : undefined;
  if (hasToJson(value)) return undefined;
  if (ArrayBuffer.isView(value)) return 'bytes inside an object, which become one number each: encode them as base64';
  const { constructor } = value as { constructor?: unknown };
  const isPlain = Array.isArray(value) || typeof constructor !== 'function' || constructor === Object;
  if (isPlain || Object.keys(value).length > 0) return undefined;
  return `an instance of ${constructor.name}, which becomes {}: JSON sees no private fields and no methods`;
}

const hasToJson = (value: object): boolean => typeof (value as { toJSON?: unknown }).toJSON === 'function';
