const LAST_ASCII = 0x7f;

/**
 * A cache of texts that come again and again, by a cheap hash of their bytes. Comparing bytes with a known string is several times
 * cheaper than creating a new one, and the string has its hash already. Bounded: a new text evicts an old one.
 */
export class RecurringTexts {
  private readonly texts: string[];
  /** Whether the last text was known: then it is ASCII, and so exactly its bytes. */
  wasKnown = false;

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
    this.wasKnown = length === 0;
    if (length === 0) return '';
    if (length > this.longest) return bytes.toString('utf8', start, end);
    const quarter = length >> 2;
    const ends = bytes[start + quarter]! * 31 + bytes[end - 1]!;
    const middle = bytes[start + 2 * quarter]! * 31 + bytes[start + 3 * quarter]!;
    const slot = (ends * 61 + middle * 7 + length) & (this.texts.length - 1);
    const known = this.texts[slot]!;
    if (known.length === length && spells(bytes, start, known)) {
      this.wasKnown = true;
      return known;
    }
    const text = bytes.toString('utf8', start, end);
    // One character per byte: ASCII, or U+FFFD, which equals no byte.
    if (text.length === length) this.texts[slot] = text;
    return text;
  }
}

/** Whether the bytes from `start` on are exactly the characters of `text`, all of them ASCII. */
export function spells(bytes: Buffer, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > LAST_ASCII || code !== bytes[start + i]) return false;
  }
  return true;
}
