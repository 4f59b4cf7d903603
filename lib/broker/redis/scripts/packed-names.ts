import { PackedReader } from './packed-reader.js';

/** Text as MessagePack, for `cmsgpack` of Redis. */
function packText(text: string): Buffer {
  const size = Buffer.byteLength(text);
  const head = size < 32 ? [0xa0 | size] : size < 256 ? [0xd9, size] : [0xda, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from(head), Buffer.from(text)]);
}

/** Names, of up to 65,535 bytes each, as a MessagePack array. */
export function packNames(names: readonly string[]): Buffer {
  const { length } = names;
  const head = Buffer.alloc(length < 16 ? 1 : 5);
  if (length < 16) head[0] = 0x90 | length;
  else {
    head[0] = 0xdd;
    head.writeUInt32BE(length, 1);
  }
  return Buffer.concat([head, ...names.map(packText)]);
}

/** Reads names, and returns the bytes behind them, too. What somebody has damaged reads as none. */
export function readPackedNames(bytes: Buffer): { readonly names: readonly string[]; readonly rest: Buffer } {
  const names: string[] = [];
  try {
    const reader = new PackedReader(bytes);
    while (reader.more()) names.push(reader.text());
    return { names, rest: bytes.subarray(reader.offset) };
  } catch {
    return { names: [], rest: Buffer.alloc(0) };
  }
}
