import { isUtf8 } from 'node:buffer';

/**
 * Everything that Go's `unicode.IsPrint` refuses: control characters (including line breaks),
 * format characters, spaces other than U+0020.
 */
const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

/** The bytes as asynqmon shows them: as text if all of it is printable. Empty stays empty. */
export function printable(bytes: Buffer | undefined): string {
  if (bytes === undefined || bytes.length === 0) return '';
  const text = isUtf8(bytes) ? bytes.toString() : '';
  return /[^ ]/.test(text) && !UNPRINTABLE.test(text) ? text : 'non-printable bytes';
}

/** The first `most` bytes, or fewer to keep the last character whole. */
export function beginning(bytes: Buffer, most: number): Buffer {
  if (bytes.length <= most) return bytes;
  let end = most;
  // At most three bytes follow the first byte of a character.
  while (end > most - 3 && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end);
}

/** The first `most` characters (code points), with an ellipsis if the text was cut. */
export function cut(text: string, most: number): { text: string; cut: boolean } {
  if (text.length <= most) return { text, cut: false };
  let units = 0;
  for (let left = most; left > 0 && units < text.length; left--) units += text.codePointAt(units)! > 0xffff ? 2 : 1;
  return units >= text.length ? { text, cut: false } : { text: `${text.slice(0, units)}…`, cut: true };
}
