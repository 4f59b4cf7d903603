/**
 * A cache of texts that come again and again, by a cheap hash of their bytes. Comparing bytes with a known string is several times
 * cheaper than creating a new one, and the string has its hash already. Bounded: a new text evicts an old one.
 */
export class RecurringTexts {
  private readonly texts: string[];

  /** @param slots a power of two; @param longest bytes of a text that is kept */
  constructor(
    slots: number,
    private readonly longest: number,
  ) {
    this.texts = Array.from({ length: slots }, () => '');
  }

  /** The text of these bytes of UTF-8. */
  read(bytes: Buffer, start: number, end: number): string {
    const length = end - start;
    if (length === 0) return '';
    if (length > this.longest) return bytes.toString('utf8', start, end);
    const quarter = length >> 2;
    const ends = bytes[start + quarter]! * 31 + bytes[end - 1]!;
    const middle = bytes[start + 2 * quarter]! * 31 + bytes[start + 3 * quarter]!;
    const slot = (ends * 61 + middle * 7 + length) & (this.texts.length - 1);
    const known = this.texts[slot]!;
    if (known.length === length && spells(bytes, start, known)) return known;
    const text = bytes.toString('utf8', start, end);
    // One character per byte: ASCII, or U+FFFD, which equals no byte. An \u00e9 would match the
    // invalid byte 0xe9.
    if (text.length === length) this.texts[slot] = text;
    return text;
  }
}

/**
 * Whether the bytes are exactly the characters of `text`. Never true of bytes above 0x7f, as no
 * cached text has such characters.
 */
function spells(bytes: Buffer, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) !== bytes[start + i]) return false;
  }
  return true;
}
