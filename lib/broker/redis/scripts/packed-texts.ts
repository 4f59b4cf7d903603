const FIXED_ARRAY = 0x90;
const ARRAY_32 = 0xdd;
const FIXED_TEXT = 0xa0;
const TEXT_8 = 0xd9;
const TEXT_16 = 0xda;
const TEXT_32 = 0xdb;

/** The most bytes before an array, and before a text. */
const HEAD = 5;

/** Bytes of a text of JavaScript, at most, per unit; a short one that is written here costs less than a call of Node's. */
const BYTES_PER_UNIT = 3;
const SHORT = 32;

/** Byte strings, and texts as UTF-8, as a MessagePack array, for `cmsgpack.unpack` of a script. */
export function packTexts(texts: readonly (string | Buffer)[]): Buffer {
  let size = HEAD;
  for (let i = 0; i < texts.length; i++) {
    const text = texts[i]!;
    size +=
      HEAD + (typeof text === 'string' && text.length < SHORT ? BYTES_PER_UNIT * text.length : Buffer.byteLength(text));
  }
  const bytes = Buffer.allocUnsafe(size);
  let at = writeHead(bytes, texts.length);
  for (let i = 0; i < texts.length; i++) {
    const text = texts[i]!;
    const end = text.length < SHORT ? writeShort(bytes, text, at) : 0;
    if (end > 0) {
      at = end;
      continue;
    }
    at = writeTextHead(bytes, Buffer.byteLength(text), at);
    at += typeof text === 'string' ? bytes.write(text, at) : text.copy(bytes, at);
  }
  return bytes.subarray(0, at);
}

/** @returns where it ends; 0 when the text is not ASCII */
function writeShort(bytes: Buffer, text: string | Buffer, start: number): number {
  const { length } = text;
  let at = start;
  bytes[at++] = FIXED_TEXT | length;
  if (typeof text !== 'string') {
    for (let i = 0; i < length; i++) bytes[at++] = text[i]!;
    return at;
  }
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return 0;
    bytes[at++] = unit;
  }
  return at;
}

function writeHead(bytes: Buffer, length: number): number {
  if (length < 16) return bytes.writeUInt8(FIXED_ARRAY | length, 0);
  return bytes.writeUInt32BE(length, bytes.writeUInt8(ARRAY_32, 0));
}

function writeTextHead(bytes: Buffer, length: number, at: number): number {
  if (length < 32) return bytes.writeUInt8(FIXED_TEXT | length, at);
  if (length < 0x100) return bytes.writeUInt8(length, bytes.writeUInt8(TEXT_8, at));
  if (length < 0x10000) return bytes.writeUInt16BE(length, bytes.writeUInt8(TEXT_16, at));
  return bytes.writeUInt32BE(length, bytes.writeUInt8(TEXT_32, at));
}
