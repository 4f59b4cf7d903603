const FIXED_ARRAY = 0x90;
const ARRAY_16 = 0xdc;
const ARRAY_32 = 0xdd;
const LARGEST_FIXED_COUNT = 0x7f;
const COUNT_8 = 0xcc;
const COUNT_64 = 0xcf;
const FIXED_TEXT = 0xa0;
const TEXT_8 = 0xd9;
const TEXT_16 = 0xda;
const TEXT_32 = 0xdb;

/**
 * Reads a flat list of byte strings and counts that a script wrote with `cmsgpack.pack`. Scripts
 * return one packed string, because ioredis 6 takes several times longer to read an array of the
 * same elements.
 */
export class PackedReader {
  private position = 0;
  private left: number;

  constructor(readonly bytes: Buffer) {
    this.left = bytes.length === 0 ? 0 : this.arrayLength();
  }

  more(): boolean {
    return this.left > 0;
  }

  /** Where the element that was read last ends. */
  get offset(): number {
    return this.position;
  }

  /** Whether a list was packed behind this one, whose elements have all been read. */
  get hasNextList(): boolean {
    return this.position < this.bytes.length;
  }

  /** Goes on to the list that was packed behind this one, whose elements have all been read. */
  nextList(): void {
    this.left = this.arrayLength();
  }

  /** The next element as a view of the reply, not a copy. */
  view(): Buffer {
    const start = this.enter();
    return this.bytes.subarray(start, this.position);
  }

  /** The next element as text. */
  text(): string {
    const start = this.enter();
    return this.bytes.toString('utf8', start, this.position);
  }

  /** The next element, a non-negative integer. */
  count(): number {
    this.left--;
    const type = this.number(1);
    if (type <= LARGEST_FIXED_COUNT) return type;
    if (type < COUNT_8 || type > COUNT_64) throw new RangeError(`a packed reply holds ${type} where a count is due`);
    return this.number(2 ** (type - COUNT_8));
  }

  /** Skips the next element and returns where it starts. */
  enter(): number {
    const length = this.textLength();
    const start = this.position;
    this.position += length;
    this.left--;
    if (this.position > this.bytes.length) throw new RangeError('a packed reply ends within an element');
    return start;
  }

  private arrayLength(): number {
    const type = this.number(1);
    if ((type & 0xf0) === FIXED_ARRAY) return type & 0x0f;
    if (type === ARRAY_16) return this.number(2);
    if (type === ARRAY_32) return this.number(4);
    throw new RangeError(`a packed reply begins with ${type}, which is no array`);
  }

  private textLength(): number {
    const type = this.number(1);
    if ((type & 0xe0) === FIXED_TEXT) return type & 0x1f;
    if (type === TEXT_8) return this.number(1);
    if (type === TEXT_16) return this.number(2);
    if (type === TEXT_32) return this.number(4);
    throw new RangeError(`a packed reply holds ${type} where text is due`);
  }

  private number(size: number): number {
    let value = 0;
    for (let i = 0; i < size; i++) value = value * 256 + this.bytes[this.position++]!;
    return value;
  }
}
