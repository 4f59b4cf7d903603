import { UndecodableMessageError } from '../errors.js';
import { RecurringTexts, spells } from './recurring-texts.js';

/** The wire type in a tag; 6 and 7 do not exist. */
const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const GROUP_START = 3;
const GROUP_END = 4;
const FIXED32 = 5;

const MAX_FIELD_NUMBER = 2 ** 29 - 1;
const TWO_TO_32 = 2 ** 32;

/** Shared by all empty payloads, which so need no allocation. */
export const NO_BYTES: Buffer = Buffer.alloc(0);

/** Task types, queues, header keys. */
const NAMES = new RecurringTexts(256, 48);

/**
 * Reads the protobuf wire format, forward only and never past `end`, whatever lengths the bytes
 * claim. The structure is checked as in Go; text is read leniently (invalid UTF-8 becomes U+FFFD),
 * as a task with invalid text must still be movable.
 *
 * Our own code, as it is on the hot path of every task; bench/codec compares it with libraries.
 */
export class ProtoReader {
  private position: number;
  private end: number;
  private readonly length: number;
  /** The text read last is known to equal its bytes. */
  private exact = false;
  /** The halves of the last varint, both as int32. */
  private low = 0;
  private high = 0;

  /** @param message the name of the message, for errors; @param start where it is within the bytes */
  constructor(
    private readonly bytes: Buffer,
    private readonly message: string,
    private readonly start = 0,
    end = bytes.length,
  ) {
    this.position = start;
    this.end = end;
    this.length = end - start;
  }

  get offset(): number {
    return this.position;
  }

  /** Whether the message, or the nested one, has more fields. */
  more(): boolean {
    return this.position < this.end;
  }

  /** Field number × 8 + wire type; the number is valid, the type may not be. */
  tag(): number {
    const start = this.position;
    this.varint();
    const tag = this.low >>> 0;
    if (this.high !== 0 || tag < 8 || tag >>> 3 > MAX_FIELD_NUMBER) this.fail('has an invalid field number', start);
    return tag;
  }

  int32(): number {
    this.varint();
    return this.low;
  }

  bool(): boolean {
    this.varint();
    return (this.low | this.high) !== 0;
  }

  /** The nearest double: exact if it is a safe integer. */
  int64(): number {
    this.varint();
    return this.high * TWO_TO_32 + (this.low >>> 0);
  }

  /** A view of the bytes, not a copy. */
  view(): Buffer {
    const end = this.lengthDelimited();
    const start = this.position;
    this.position = end;
    return start === end ? NO_BYTES : this.bytes.subarray(start, end);
  }

  /** @param expected returned itself, when it is the text */
  string(expected = ''): string {
    const end = this.lengthDelimited();
    const start = this.position;
    this.position = end;
    this.exact = expected.length === end - start && spells(this.bytes, start, expected);
    if (this.exact) return expected;
    return start === end ? '' : this.bytes.toString('utf8', start, end);
  }

  /** The same, for text that many messages share. */
  recurringString(): string {
    const end = this.lengthDelimited();
    const start = this.position;
    this.position = end;
    const text = NAMES.read(this.bytes, start, end);
    this.exact = NAMES.wasKnown;
    return text;
  }

  /**
   * Whether the text read last equals its bytes: `false` when U+FFFD replaced bytes that are not
   * UTF-8.
   */
  isExact(text: string): boolean {
    if (this.exact || !text.includes('\ufffd')) return true;
    const bytes = Buffer.from(text);
    return this.bytes.subarray(Math.max(0, this.position - bytes.length), this.position).equals(bytes);
  }

  /**
   * Narrows the reader to the nested message that follows; pass the result to {@link leave}
   * afterwards.
   */
  enter(): number {
    const outer = this.end;
    this.end = this.lengthDelimited();
    return outer;
  }

  leave(outer: number): void {
    this.end = outer;
  }

  /** Skips the value of an unknown field. */
  skip(tag: number): void {
    if ((tag & 7) === GROUP_START) this.skipGroup(tag >>> 3);
    else this.skipValue(tag);
  }

  /** The bytes from an earlier {@link offset} up to here; a view. */
  since(offset: number): Buffer {
    return this.bytes.subarray(offset, this.position);
  }

  private skipValue(tag: number): void {
    switch (tag & 7) {
      case VARINT:
        return this.varint();
      case FIXED64:
        return this.advance(8);
      case LENGTH_DELIMITED:
        this.position = this.lengthDelimited();
        return;
      case FIXED32:
        return this.advance(4);
      default:
        this.fail(`has field ${tag >>> 3} with the impossible wire type ${tag & 7}`, this.position);
    }
  }

  /** Groups are obsolete but legal; they nest, and a list instead of recursion cannot overflow. */
  private skipGroup(field: number): void {
    const open = [field];
    while (open.length > 0) {
      const tag = this.tag();
      if ((tag & 7) === GROUP_START) open.push(tag >>> 3);
      else if ((tag & 7) !== GROUP_END) this.skipValue(tag);
      else if (open.pop() !== tag >>> 3) this.fail(`closes group ${tag >>> 3}, which is not open`, this.position);
    }
  }

  private advance(count: number): void {
    if (count > this.end - this.position) this.fail(`ends within a value of ${count} bytes`, this.position);
    this.position += count;
  }

  /** Reads a length and returns where the value ends. */
  private lengthDelimited(): number {
    const start = this.position;
    this.varint();
    const length = this.low >>> 0;
    if (this.high !== 0 || length > this.end - this.position) this.fail('claims more bytes than there are', start);
    return this.position + length;
  }

  private varint(): void {
    this.high = 0;
    const first = this.byte();
    this.low = first;
    if (first > 127) this.longVarint(first & 127);
  }

  private longVarint(first: number): void {
    let low = first;
    let high = 0;
    let shift = 7;
    for (; shift < 70; shift += 7) {
      const next = this.byte();
      const bits = next & 127;
      if (shift < 32) low |= bits << shift;
      if (shift === 28) high = bits >> 4;
      else if (shift > 28) high |= bits << (shift - 32);
      if (shift === 63 && next > 1) this.fail('has a number of more than 64 bits', this.position - 10);
      if (next < 128) break;
    }
    this.low = low;
    this.high = high;
  }

  private byte(): number {
    if (this.position >= this.end) this.fail('ends within a number', this.position);
    return this.bytes[this.position++]!;
  }

  private fail(reason: string, offset: number): never {
    // Without the bytes: they may contain a payload of an unknown task.
    throw new UndecodableMessageError(
      `not a protobuf ${this.message}: it ${reason} (byte ${offset - this.start} of ${this.length}); ` +
        'see what else writes to this key',
    );
  }
}
