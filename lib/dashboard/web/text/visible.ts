/**
 * Characters that are not seen, or that reorder what stands around them: controls, soft hyphen, bidirectional marks and
 * overrides, zero-width ones, line separators, variation selectors, tags, and halves of a surrogate pair.
 */
const HIDDEN =
  // eslint-disable-next-line no-control-regex, no-misleading-character-class -- they are what is looked for
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff]|[\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

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

/** The text in pieces to show; with `lines`, line breaks and tabs are left as they are. */
export function pieces(text: string, lines = false): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (lines && (match[0] === '\n' || match[0] === '\t')) continue;
    if (match.index > from) found.push({ text: text.slice(from, match.index), hidden: false });
    found.push({ text: nameOf(match[0]), hidden: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ text: text.slice(from), hidden: false });
  return found;
}

/** Nobody reads a longer title. */
const LONGEST_TITLE = 2_000;

/** The same as one string, for titles, labels and dialogs; of a long one the beginning. */
export function visible(text: string): string {
  const begun = beginning(text, LONGEST_TITLE);
  const named = begun.replaceAll(HIDDEN, (character) => `⟨${nameOf(character)}⟩`);
  return begun.length < text.length ? `${named}…` : named;
}
