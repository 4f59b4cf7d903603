const FIXED_ARRAY = 0x90;
const ARRAY_32 = 0xdd;
const FIXED_TEXT = 0xa0;
const TEXT_8 = 0xd9;
const TEXT_16 = 0xda;
const TEXT_32 = 0xdb;

/** The most bytes before an array, and before a text. */
const HEAD = 5;

/** Byte strings as a MessagePack array, for `cmsgpack.unpack` of a script. */
export function packTexts(texts: readonly Buffer[]): Buffer {
  let size = HEAD;
  for (const text of texts) size += HEAD + text.length;
  const bytes = Buffer.allocUnsafe(size);
  let at = writeHead(bytes, texts.length);
  for (const text of texts) {
    at = writeTextHead(bytes, text.length, at);
    at += text.copy(bytes, at);
  }
  return bytes.subarray(0, at);
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
