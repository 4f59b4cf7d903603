/** Messages are written one after the other into shared memory, and are views of it. */
const SLAB_BYTES = 64 * 1024;
/** A message that may be longer than this gets memory of its own. */
const MAX_BYTES_IN_SLAB = 8 * 1024;
/** Up to this length a loop over the characters is faster than a call into Node. */
const MAX_LOOPED_LENGTH = 24;
/** Up to this length the length of the UTF-8 fits into one byte, and need not be measured first. */
const MAX_LENGTH_WITH_SHORT_PREFIX = 42;

const TWO_TO_32 = 2 ** 32;
const MAX_INT32 = 2 ** 31 - 1;
const MIN_INT32 = -(2 ** 31);

let slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
let slabUsed = 0;

/**
 * The most bytes of a text field: UTF-8 needs at most three per UTF-16 unit, then tag and length.
 */
export const textBound = (text: string): number => text.length * 3 + 6;
/** The most bytes of a field of bytes. */
export const bytesBound = (bytes: Uint8Array): number => bytes.length + 6;
/** The most bytes of a number field. */
export const NUMBER_BOUND = 11;
/** The most bytes of tag and length of a nested message. */
export const NESTED_BOUND = 6;

/** What a JavaScript number represents exactly. */
export const clampInteger = (value: number): number =>
  Math.min(Math.max(value, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);

const fitInt32 = (value: number): number => Math.min(Math.max(value, MIN_INT32), MAX_INT32) | 0;

const varintSize = (value: number): number => (value < 128 ? 1 : 1 + varintSize(value >>> 7));

/**
 * Writes the protobuf wire format like Go: zero values are left out, fields are in the order of the
 * calls. Tags are field number × 8 + wire type and below 128, as all of asynq's are. A number that
 * its field cannot represent is converted (fraction dropped, clamped, NaN is 0); a lone surrogate
 * becomes U+FFFD, because Go would reject the message.
 */
export class ProtoWriter {
  private readonly buffer: Buffer;
  private readonly start: number;
  private readonly limit: number;
  private position: number;

  /**
   * @param bound the most bytes to be written; reserved now, and the rest is freed by
   * {@link finish}
   */
  constructor(bound: number) {
    const shared = bound <= MAX_BYTES_IN_SLAB;
    if (!shared) {
      this.buffer = Buffer.allocUnsafeSlow(bound);
    } else if (slabUsed + bound <= SLAB_BYTES) {
      this.buffer = slab;
    } else {
      this.buffer = slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
      slabUsed = 0;
    }
    this.start = this.position = shared ? slabUsed : 0;
    this.limit = this.start + bound;
    if (shared) slabUsed = this.limit;
  }

  finish(): Buffer {
    if (this.position > this.limit) throw new RangeError('protobuf message is longer than its bound');
    if (this.buffer === slab && slabUsed === this.limit) slabUsed = this.position;
    return this.buffer.subarray(this.start, this.position);
  }

  string(tag: number, text: string): void {
    if (text !== '') this.entryString(tag, text);
  }

  /** Written even if empty, as both parts of a map entry are. */
  entryString(tag: number, text: string): void {
    const { buffer } = this;
    const { length } = text;
    buffer[this.position++] = tag;
    if (length > MAX_LOOPED_LENGTH) return this.longText(text);
    let end = this.position + 1;
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      if (unit > 127) return this.longText(text);
      buffer[end++] = unit;
    }
    buffer[this.position] = length;
    this.position = end;
  }

  bytes(tag: number, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.buffer[this.position++] = tag;
    this.varint32(bytes.length);
    this.raw(bytes);
  }

  /** Bytes that are complete fields. */
  raw(bytes: Uint8Array): void {
    this.buffer.set(bytes, this.position);
    this.position += bytes.length;
  }

  int32(tag: number, value: number): void {
    const fitting = fitInt32(value);
    if (fitting !== 0) this.entryInt32(tag, fitting);
  }

  /** Written even if zero, as both parts of a map entry are. */
  entryInt32(tag: number, value: number): void {
    const fitting = fitInt32(value);
    this.buffer[this.position++] = tag;
    if (fitting < 0) this.varint64(fitting >>> 0, -1 >>> 0);
    else this.varint32(fitting);
  }

  int64(tag: number, value: number): void {
    const whole = Math.trunc(value) || 0;
    if (whole === 0) return;
    this.buffer[this.position++] = tag;
    if (whole > 0 && whole <= MAX_INT32) return this.varint32(whole);
    const fitting = clampInteger(whole);
    this.varint64(fitting >>> 0, Math.floor(fitting / TWO_TO_32) >>> 0);
  }

  bool(tag: number, value: boolean): void {
    if (!value) return;
    this.buffer[this.position++] = tag;
    this.buffer[this.position++] = 1;
  }

  /** Begins a nested message; pass the result to {@link close} after its fields. */
  open(tag: number): number {
    this.buffer[this.position++] = tag;
    return this.position++;
  }

  close(mark: number): void {
    const start = mark + 1;
    const length = this.position - start;
    // One byte is reserved for the length; a longer length moves the content.
    const extra = varintSize(length) - 1;
    if (extra > 0) this.buffer.copyWithin(start + extra, start, this.position);
    this.position = mark;
    this.varint32(length);
    this.position += length;
  }

  private longText(text: string): void {
    if (text.length <= MAX_LENGTH_WITH_SHORT_PREFIX) {
      const written = this.buffer.write(text, this.position + 1);
      this.buffer[this.position] = written;
      this.position += 1 + written;
      return;
    }
    this.varint32(Buffer.byteLength(text));
    this.position += this.buffer.write(text, this.position);
  }

  /** @param value not negative */
  private varint32(value: number): void {
    const { buffer } = this;
    let left = value;
    while (left > 127) {
      buffer[this.position++] = (left & 127) | 128;
      left >>>= 7;
    }
    buffer[this.position++] = left;
  }

  /** Both halves as uint32. */
  private varint64(low: number, high: number): void {
    let lower = low;
    let upper = high;
    while (upper > 0 || lower > 127) {
      this.buffer[this.position++] = (lower & 127) | 128;
      lower = ((lower >>> 7) | (upper << 25)) >>> 0;
      upper >>>= 7;
    }
    this.buffer[this.position++] = lower;
  }
}
