import { cut, padEnd, widthOf } from '../output/text.js';

/** What a piece of text means; each style has its color. */
export type Style = 'title' | 'head' | 'good' | 'bad' | 'warning' | 'dim' | 'key' | 'strong';

export interface Segment {
  readonly text: string;
  readonly style?: Style | undefined;
}

/** A line of the screen, in segments of printable text: escaped with `plain`. */
export interface Line {
  readonly segments: readonly Segment[];
  /** Shown inverted over the whole width: the selected row, or a bar. */
  readonly inverted?: boolean;
}

export const lineOf = (text: string, style?: Style): Line => ({ segments: [{ text, style }] });

const ANSI_CODES: Readonly<Record<Style, string>> = {
  title: '1;36',
  head: '1',
  good: '32',
  bad: '31',
  warning: '33',
  dim: '2',
  key: '1',
  strong: '1',
};

/** The line with escape sequences, cut to `width`. */
export function paint({ segments, inverted = false }: Line, width: number, colors: boolean): string {
  if (!colors || inverted) {
    const text = cut(segments.map((segment) => segment.text).join(''), width);
    return colors ? `\u001b[7m${padEnd(text, width)}\u001b[0m` : text.trimEnd();
  }
  let left = width;
  let painted = '';
  for (const { text, style } of segments) {
    if (left <= 0) break;
    const shown = cut(text, left);
    left -= widthOf(shown);
    painted += style ? `\u001b[${ANSI_CODES[style]}m${shown}\u001b[0m` : shown;
  }
  return painted;
}
