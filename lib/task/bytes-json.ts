import { isUtf8 } from 'node:buffer';

/** What stands for bytes in JSON: the JSON value they are, the text they are, or base64. */
export type BytesEncoding = 'json' | 'utf8' | 'base64';

/**
 * Bytes as a client can read them; `undefined` when there are none. JSON with a number that JavaScript cannot hold stays text:
 * a value that is another one would be worse than none.
 */
export function bytesToJson(bytes: Buffer | undefined): { value: unknown; encoding: BytesEncoding } | undefined {
  if (!bytes?.length) return undefined;
  if (!isUtf8(bytes)) return { value: bytes.toString('base64'), encoding: 'base64' };
  const text = bytes.toString();
  try {
    const value: unknown = JSON.parse(text);
    if (keepsNumbers(text)) return { value, encoding: 'json' };
  } catch {
    // no JSON
  }
  return { value: text, encoding: 'utf8' };
}

/** The fields of something that has a `taskPayload`, the payload as a client can read it; without it when there is none. */
export function payloadToJson({ taskPayload, ...rest }: { readonly taskPayload: Buffer }): object {
  const payload = bytesToJson(taskPayload);
  return { ...rest, ...(payload && { taskPayload: payload.value, taskPayloadEncoding: payload.encoding }) };
}

const STRINGS = /"(?:[^"\\]|\\.)*"/g;
/** Numbers short of this are exact. */
const LONG_NUMBER = /-?\d[\d.]{15,}|[\d.]+[eE][+-]?\d+/g;

/** Whether every whole number is one that JavaScript holds exactly, and none is too large. */
function keepsNumbers(json: string): boolean {
  if (json.search(LONG_NUMBER) < 0) return true;
  const numbers = json.replace(STRINGS, '""').match(LONG_NUMBER) ?? [];
  return numbers.every((digits) => Number.isFinite(Number(digits)) && isExact(digits));
}

const isExact = (digits: string): boolean => /[.eE]/.test(digits) || Number.isSafeInteger(Number(digits));
