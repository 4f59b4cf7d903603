import { isUtf8 } from 'node:buffer';
import stringWidth from 'string-width';
import { printable } from '../printable.js';

/*
 * What comes out of Redis was put there by others: it must neither break a table nor send an escape sequence to the terminal.
 */

const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

/** The text on one line, what cannot be printed escaped as Go's `%q` does it: `\n`, `\x1b`, `\u202e`. */
export const plain = printable;

/** A payload or result: the text it is, if all of it can be printed, as asynq decides it. */
export function describeBytes(bytes: Buffer | undefined): string {
  if (bytes === undefined || bytes.length === 0) return '';
  const text = isUtf8(bytes) ? bytes.toString() : '';
  return /[^ ]/.test(text) && !UNPRINTABLE.test(text) ? text : 'non-printable bytes';
}

/** Columns of a terminal. */
export const widthOf = (text: string): number => stringWidth(text);

/** No wider than `width` (at least 1), with an ellipsis where something was left out. */
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
