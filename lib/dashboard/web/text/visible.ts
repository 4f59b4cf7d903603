/**
 * Characters that are invisible, or that reorder the text around them: controls, soft hyphen,
 * bidirectional marks and overrides, zero-width characters, line separators, variation selectors,
 * tags, and lone surrogates.
 */
const HIDDEN =
  /[\p{Cc}\u034f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff]|[\ufe00-\ufe0e]|[\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

const NAMES: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\0': '\\0',
};

/**
 * How a hidden character is shown: `
 * `, or `U+202E`.
 */
export const nameOf = (character: string): string =>
  NAMES[character] ?? `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

export interface Piece {
  text: string;
  /** Whether the text is the name of a hidden character. */
  hidden: boolean;
}

/** The first characters of a text, without half a surrogate pair at the end. */
export function beginning(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
}

/**
 * The text as at most `most` pieces; with `lines`, line breaks and tabs stay as they are. `end`:
 * how much of the text they cover.
 */
export function pieces(text: string, lines = false, most = Infinity): { found: Piece[]; end: number } {
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (lines && (match[0] === '\n' || match[0] === '\t')) continue;
    if (found.length >= most) return { found, end };
    if (match.index > end) found.push({ text: text.slice(end, match.index), hidden: false });
    found.push({ text: nameOf(match[0]), hidden: true });
    end = match.index + match[0].length;
  }
  if (end < text.length && found.length < most) {
    found.push({ text: text.slice(end), hidden: false });
    end = text.length;
  }
  return { found, end };
}

/** Nobody reads a longer title. */
const MAX_TITLE_LENGTH = 2_000;

/** The same as one string, for titles, labels and dialogs; only the beginning of a long text. */
export function visible(text: string): string {
  const begun = beginning(text, MAX_TITLE_LENGTH);
  const named = begun.replaceAll(HIDDEN, (character) => `⟨${nameOf(character)}⟩`);
  return begun.length < text.length ? `${named}…` : named;
}
