/**
 * Characters that are not seen, or that reorder what stands around them: controls, soft hyphen, bidirectional marks and
 * overrides, zero-width ones, line separators, variation selectors, tags, and halves of a surrogate pair.
 */
const HIDDEN =
  /[\p{Cc}\u034f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff]|[\ufe00-\ufe0e]|[\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

const NAMES: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\0': '\\0',
};

/** How a hidden character is shown: `\n`, or `U+202E`. */
export const nameOf = (character: string): string =>
  NAMES[character] ?? `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

export interface Piece {
  text: string;
  /** Whether the text names a character that would not be seen. */
  hidden: boolean;
}

/** The first characters of a text, and no half of the last. */
export function beginning(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
}

/** The text in pieces to show, so many at most; with `lines`, line breaks and tabs are left as they are. `end`: how far they go. */
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

/** The same as one string, for titles, labels and dialogs; of a long one the beginning. */
export function visible(text: string): string {
  const begun = beginning(text, MAX_TITLE_LENGTH);
  const named = begun.replaceAll(HIDDEN, (character) => `⟨${nameOf(character)}⟩`);
  return begun.length < text.length ? `${named}…` : named;
}
