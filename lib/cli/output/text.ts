import { isUtf8 } from 'node:buffer';
import stringWidth from 'string-width';
import { printable } from '../../printable.js';

/*
 * Others wrote the text that comes from Redis: it must neither break a table nor send an escape sequence to the terminal.
 */

const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

/** The text on one line, with unprintable characters escaped like Go's `%q`: `\n`, `\x1b`, `\u202e`. */
export const plain = printable;

/** A payload or result as text if all of it is printable, by asynq's rule. */
export function describeBytes(bytes: Buffer | undefined): string {
  if (bytes === undefined || bytes.length === 0) return '';
  const text = isUtf8(bytes) ? bytes.toString() : '';
  return /[^ ]/.test(text) && !UNPRINTABLE.test(text) ? text : 'non-printable bytes';
}

/** How many columns of a terminal the text takes. */
export const widthOf = (text: string): number => stringWidth(text);

/** Cuts the text to `width` (at least 1) columns, with an ellipsis at the end. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let used = 0;
  for (const char of text) {
    used += widthOf(char);
    if (used > width - 1) break;
    kept += char;
  }
  return `${kept}…`;
}

export const padEnd = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)));
export const padStart = (text: string, width: number): string => ' '.repeat(Math.max(0, width - widthOf(text))) + text;
