const NEWLINE = 0x0a;
const SPACES = new Set([0x20, 0x09, NEWLINE, 0x0b, 0x0c, 0x0d]);

/** Counts like `wc`, chunk by chunk. */
export class TextCounter {
  private bytes = 0;
  private lines = 0;
  private words = 0;
  private inWord = false;

  get counts(): { bytes: number; lines: number; words: number } {
    return { bytes: this.bytes, lines: this.lines, words: this.words };
  }

  add(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    for (const byte of chunk) {
      if (byte === NEWLINE) this.lines += 1;
      const space = SPACES.has(byte);
      if (!space && !this.inWord) this.words += 1;
      this.inWord = !space;
    }
  }
}
