import { isUtf8 } from 'node:buffer';

/** How bytes are shown in JSON: as the JSON value or the text they are, or in base64. */
export type BytesEncoding = 'json' | 'utf8' | 'base64';

/**
 * Bytes in a form that a client can read; `undefined` without bytes. JSON with a number that
 * JavaScript cannot represent stays text, as a changed value would be worse.
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

/** Replaces `taskPayload` by a payload that a client can read, if there is one. */
export function payloadToJson({ taskPayload, ...rest }: { readonly taskPayload: Buffer }): object {
  const payload = bytesToJson(taskPayload);
  return { ...rest, ...(payload && { taskPayload: payload.value, taskPayloadEncoding: payload.encoding }) };
}

const STRINGS = /"(?:[^"\\]|\\.)*"/g;
/** Shorter numbers are exact. */
const LONG_NUMBER = /-?\d[\d.]{15,}|[\d.]+[eE][+-]?\d+/g;

/** Whether JavaScript represents every whole number exactly, and no number is too large. */
function keepsNumbers(json: string): boolean {
  if (json.search(LONG_NUMBER) < 0) return true;
  const numbers = json.replace(STRINGS, '""').match(LONG_NUMBER) ?? [];
  return numbers.every((digits) => Number.isFinite(Number(digits)) && isExact(digits));
}

const isExact = (digits: string): boolean => /[.eE]/.test(digits) || Number.isSafeInteger(Number(digits));
