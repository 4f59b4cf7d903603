import { escapeCharacter } from '../printable.js';

/**
 * Go's `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols, and U+0020 as the only
 * space.
 */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** Printable characters that Go escapes. */
const QUOTES: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
]);

const UNESCAPES: ReadonlyMap<string, string> = new Map(
  ['"', '\\', '\x07', '\b', '\f', '\n', '\r', '\t', '\v'].map((char) => [quoteChar(char), char]),
);

/** Text in Go's `%q` form. A lone surrogate becomes U+FFFD, as everywhere on the wire. */
export function goQuote(text: string): string {
  let quoted = '"';
  for (const char of text) quoted += quoteChar(char);
  return quoted + '"';
}

function quoteChar(char: string): string {
  return QUOTES.get(char) ?? (PRINTABLE.test(char) ? char : escapeCharacter(char));
}

const QUOTED = /^"(?:[^"\\\n]|\\(?:[abfnrtv\\"]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}))*"$/;
const PIECE = /[^\\]+|\\(?:x(?<byte>..)|u(?<short>.{4})|U(?<long>.{8})|(?<octal>[0-7]{3})|.)/g;

/**
 * Reads a Go string literal in double quotes; `undefined` if it is not one. Bytes that are not
 * UTF-8 become U+FFFD.
 */
export function goUnquote(literal: string): string | undefined {
  if (!QUOTED.test(literal)) return undefined;
  const pieces: Buffer[] = [];
  for (const { 0: piece, groups } of literal.slice(1, -1).matchAll(PIECE)) {
    const bytes = unquotePiece(piece, groups!);
    if (!bytes) return undefined;
    pieces.push(bytes);
  }
  return Buffer.concat(pieces).toString();
}

function unquotePiece(
  piece: string,
  { byte, short, long, octal }: Record<string, string | undefined>,
): Buffer | undefined {
  if (byte) return Buffer.of(parseInt(byte, 16));
  if (octal) return Buffer.of(parseInt(octal, 8));
  const point = short ?? long;
  if (!point) return Buffer.from(UNESCAPES.get(piece) ?? piece);
  const code = parseInt(point, 16);
  const legal = code < 0xd800 || (code > 0xdfff && code < 0x110000);
  return legal ? Buffer.from(String.fromCodePoint(code)) : undefined;
}
