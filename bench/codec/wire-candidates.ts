import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import protobufjs from 'protobufjs/minimal.js';
import type { TaskMessage } from '../../lib/wire/message.js';
import { bufferOf, emptyMessage, type Candidate } from './candidate.js';
import { SCALARS } from './fields.js';

/*
 * The readers and writers of the libraries, called from our own switch and not from a table: the fastest
 * use of each library. Unknown fields are kept, because the package must keep them.
 */

interface Reader {
  readonly pos: number;
  readonly len: number;
  uint32(): number;
  int32(): number;
  int64(): unknown;
  string(): string;
  bytes(): Uint8Array;
}

type Draft = ReturnType<typeof emptyMessage>;

/** Returns whether the field is known. */
function readScalar(reader: Reader, tag: number, draft: Draft): boolean {
  switch (tag) {
    case 10:
      draft.type = reader.string();
      return true;
    case 18:
      draft.payload = bufferOf(reader.bytes());
      return true;
    case 26:
      draft.id = reader.string();
      return true;
    case 34:
      draft.queue = reader.string();
      return true;
    case 40:
      draft.maxRetry = reader.int32();
      return true;
    case 48:
      draft.retried = reader.int32();
      return true;
    case 58:
      draft.errorMsg = reader.string();
      return true;
    case 64:
      draft.timeout = Number(reader.int64());
      return true;
    case 72:
      draft.deadline = Number(reader.int64());
      return true;
    case 82:
      draft.uniqueKey = reader.string();
      return true;
    case 88:
      draft.lastFailedAt = Number(reader.int64());
      return true;
    case 96:
      draft.retention = Number(reader.int64());
      return true;
    case 104:
      draft.completedAt = Number(reader.int64());
      return true;
    case 114:
      draft.groupKey = reader.string();
      return true;
    default:
      return false;
  }
}

function readHeader(reader: Reader, draft: Draft): void {
  const end = reader.uint32() + reader.pos;
  let key = '';
  let value = '';
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 10) key = reader.string();
    else if (tag === 18) value = reader.string();
    else throw new Error('unexpected field in a header');
  }
  const headers = (draft.headers ??= Object.create(null) as Record<string, string>) as Record<string, string>;
  headers[key] = value;
}

function read(reader: Reader, bytes: Buffer, skip: (tag: number) => void): TaskMessage {
  const draft = emptyMessage();
  let kept: Buffer[] | undefined;
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const tag = reader.uint32();
    if (readScalar(reader, tag, draft)) continue;
    if (tag === 122) readHeader(reader, draft);
    else {
      skip(tag);
      (kept ??= []).push(bytes.subarray(start, reader.pos));
    }
  }
  if (kept) draft.unknownFields = Buffer.concat(kept);
  return draft;
}

interface Writer<W> {
  uint32(value: number): W;
  int32(value: number): W;
  int64(value: number): W;
  string(value: string): W;
  bytes(value: Uint8Array): W;
  fork(): W;
}

function write<W extends Writer<W>>(writer: W, message: TaskMessage, join: (writer: W) => void): void {
  for (const [no, , name, kind] of SCALARS) {
    const value = message[name];
    if (value === 0 || value === '' || (kind === 'bytes' && (value as Buffer).length === 0)) continue;
    if (kind === 'string') writer.uint32(no * 8 + 2).string(value as string);
    else if (kind === 'bytes') writer.uint32(no * 8 + 2).bytes(value as Buffer);
    else if (kind === 'int32') writer.uint32(no * 8).int32(value as number);
    else writer.uint32(no * 8).int64(value as number);
  }
  for (const [key, value] of Object.entries(message.headers ?? {})) {
    join(writer.uint32(122).fork().uint32(10).string(key).uint32(18).string(value));
  }
}

export const bufbuildWire: Candidate = {
  name: '@bufbuild/protobuf/wire, own fields',
  encode(message) {
    const writer = new BinaryWriter();
    write(writer, message, (w) => w.join());
    if (message.unknownFields) writer.raw(message.unknownFields);
    return writer.finish();
  },
  decode(bytes) {
    const reader = new BinaryReader(bytes);
    return read(reader, bytes, (tag) => reader.skip((tag & 7) as WireType, tag >>> 3));
  },
};

export const protobufjsMinimal: Candidate = {
  name: 'protobufjs/minimal, own fields',
  encode(message) {
    const writer = protobufjs.Writer.create();
    write(writer, message, (w) => w.ldelim());
    const bytes = writer.finish();
    return message.unknownFields ? Buffer.concat([bytes, message.unknownFields]) : bytes;
  },
  decode(bytes) {
    const reader = protobufjs.Reader.create(bytes);
    return read(reader, bytes, (tag) => reader.skipType(tag & 7));
  },
};
