import type { TaskMessage } from './message.js';
import { NO_BYTES, ProtoReader } from './proto-reader.js';
import { bytesBound, clampInteger, NESTED_BOUND, NUMBER_BOUND, ProtoWriter, textBound } from './proto-writer.js';

/** The tags: field number × 8 + wire type (wire-protocol section 2.1). */
const TYPE = 10;
const PAYLOAD = 18;
const ID = 26;
const QUEUE = 34;
const RETRY = 40;
const RETRIED = 48;
const ERROR_MSG = 58;
const TIMEOUT = 64;
const DEADLINE = 72;
const UNIQUE_KEY = 82;
const LAST_FAILED_AT = 88;
const RETENTION = 96;
const COMPLETED_AT = 104;
const GROUP_KEY = 114;
const HEADERS = 122;
const HEADER_KEY = 10;
const HEADER_VALUE = 18;

/** The fields that are an int64 in Go. */
const SECONDS_FIELDS = new Map<number, 'timeout' | 'deadline' | 'lastFailedAt' | 'retention' | 'completedAt'>([
  [TIMEOUT, 'timeout'],
  [DEADLINE, 'deadline'],
  [LAST_FAILED_AT, 'lastFailedAt'],
  [RETENTION, 'retention'],
  [COMPLETED_AT, 'completedAt'],
]);
/** The text fields, which others may have written in another encoding. */
const TEXT_FIELDS = new Map<number, 'type' | 'id' | 'queue' | 'errorMsg' | 'uniqueKey' | 'groupKey'>([
  [TYPE, 'type'],
  [ID, 'id'],
  [QUEUE, 'queue'],
  [ERROR_MSG, 'errorMsg'],
  [UNIQUE_KEY, 'uniqueKey'],
  [GROUP_KEY, 'groupKey'],
]);
const NUMBER_FIELDS = 7;

type Draft = { -readonly [K in keyof TaskMessage]: TaskMessage[K] };
type Header = readonly [key: string, value: string];

const NO_HEADERS: readonly Header[] = [];

/**
 * The bytes of the hash field `msg`. Fields are in ascending order, zero values are left out, and
 * the unknown fields of the message follow. The result is a view of memory shared with other
 * messages: never write to it.
 */
export function encodeTaskMessage(message: TaskMessage): Buffer {
  if (!message.unknownFields) return encodeFields(message, NO_BYTES);
  const rest: Draft = { ...message };
  const kept = takeKept(message, rest, message.unknownFields);
  return encodeFields(rest, kept);
}

function encodeFields(message: TaskMessage, kept: Buffer): Buffer {
  const headers = message.headers ? Object.entries(message.headers) : NO_HEADERS;
  const writer = new ProtoWriter(upperBound(message, headers) + kept.length);
  writer.string(TYPE, message.type);
  writer.bytes(PAYLOAD, message.payload);
  writer.string(ID, message.id);
  writer.string(QUEUE, message.queue);
  writer.int32(RETRY, message.maxRetry);
  writer.int32(RETRIED, message.retried);
  writer.string(ERROR_MSG, message.errorMsg);
  writer.int64(TIMEOUT, message.timeout);
  writer.int64(DEADLINE, message.deadline);
  writer.string(UNIQUE_KEY, message.uniqueKey);
  writer.int64(LAST_FAILED_AT, message.lastFailedAt);
  writer.int64(RETENTION, message.retention);
  writer.int64(COMPLETED_AT, message.completedAt);
  writer.string(GROUP_KEY, message.groupKey);
  for (const header of headers) writeHeader(writer, header);
  writer.raw(kept);
  return writer.finish();
}

/**
 * Reads the hash field `msg`. Text is read leniently (invalid UTF-8 becomes U+FFFD, but not in
 * headers), and a number beyond ±(2^53 − 1) as that bound; the exact bytes of both stay in
 * `unknownFields`. `payload` is a view of `bytes`, not a copy: it keeps them in memory.
 *
 * @param start and @param end where the message is within the bytes; @param id of the message, probably
 * @throws UndecodableMessageError when the bytes are not a complete protobuf message
 */
export function decodeTaskMessage(bytes: Buffer, start = 0, end = bytes.length, id = ''): TaskMessage {
  const reader = new ProtoReader(bytes, 'asynq.TaskMessage', start, end);
  const draft = emptyMessage();
  let kept: Buffer[] | undefined;
  while (reader.more()) {
    const field = reader.offset;
    if (!readField(reader, draft, id)) (kept ??= []).push(reader.since(field));
  }
  if (kept) {
    const raw = takeKept(draft, { ...draft }, Buffer.concat(kept)); // without values that a later value of the same field replaces
    if (raw.length > 0) draft.unknownFields = raw;
  }
  return draft;
}

const emptyMessage = (): Draft => ({
  type: '',
  payload: NO_BYTES,
  id: '',
  queue: '',
  maxRetry: 0,
  retried: 0,
  errorMsg: '',
  timeout: 0,
  deadline: 0,
  uniqueKey: '',
  lastFailedAt: 0,
  retention: 0,
  completedAt: 0,
  groupKey: '',
  headers: undefined,
  unknownFields: undefined,
});

/**
 * Reads one field and returns whether the draft represents it exactly. One flat switch, as it is
 * the hot path of every task.
 */
function readField(reader: ProtoReader, draft: Draft, id: string): boolean {
  const tag = reader.tag();
  switch (tag) {
    case TYPE:
      return reader.isExact((draft.type = reader.recurringString()));
    case PAYLOAD:
      draft.payload = reader.view();
      return true;
    case ID:
      return reader.isExact((draft.id = reader.string(id)));
    case QUEUE:
      return reader.isExact((draft.queue = reader.recurringString()));
    case RETRY:
      draft.maxRetry = reader.int32();
      return true;
    case RETRIED:
      draft.retried = reader.int32();
      return true;
    case ERROR_MSG:
      return reader.isExact((draft.errorMsg = reader.string()));
    case TIMEOUT:
      return isExact((draft.timeout = clampInteger(reader.int64())));
    case DEADLINE:
      return isExact((draft.deadline = clampInteger(reader.int64())));
    case UNIQUE_KEY:
      return reader.isExact((draft.uniqueKey = reader.string()));
    case LAST_FAILED_AT:
      return isExact((draft.lastFailedAt = clampInteger(reader.int64())));
    case RETENTION:
      return isExact((draft.retention = clampInteger(reader.int64())));
    case COMPLETED_AT:
      return isExact((draft.completedAt = clampInteger(reader.int64())));
    case GROUP_KEY:
      return reader.isExact((draft.groupKey = reader.recurringString()));
    case HEADERS:
      readHeader(reader, (draft.headers ??= Object.create(null) as Record<string, string>));
      return true;
    default:
      reader.skip(tag);
      return false;
  }
}

/** The bounds may stand for any number beyond them. */
const isExact = (value: number): boolean => value < Number.MAX_SAFE_INTEGER && value > Number.MIN_SAFE_INTEGER;

/** Either part may be missing; what a newer asynq adds to an entry is lost, as in Go. */
function readHeader(reader: ProtoReader, into: Readonly<Record<string, string>>): void {
  const outer = reader.enter();
  let key = '';
  let value = '';
  while (reader.more()) {
    const tag = reader.tag();
    if (tag === HEADER_KEY) key = reader.recurringString();
    else if (tag === HEADER_VALUE) value = reader.string();
    else reader.skip(tag);
  }
  reader.leave(outer);
  (into as Record<string, string>)[key] = value;
}

function writeHeader(writer: ProtoWriter, [key, value]: Header): void {
  const mark = writer.open(HEADERS);
  writer.entryString(HEADER_KEY, key);
  writer.entryString(HEADER_VALUE, value);
  writer.close(mark);
}

/**
 * The raw fields to write back. One whose value a JavaScript number or text cannot represent
 * replaces the field, which is then cleared in `rest`; if the field has a new value since, the raw
 * one is dropped.
 */
function takeKept(message: TaskMessage, rest: Draft, unknownFields: Buffer): Buffer {
  const reader = new ProtoReader(unknownFields, 'asynq.TaskMessage (unknownFields)');
  const kept: Buffer[] = [];
  while (reader.more()) {
    const start = reader.offset;
    const tag = reader.tag();
    const [number, text] = [SECONDS_FIELDS.get(tag), TEXT_FIELDS.get(tag)];
    if (number) {
      if (clampInteger(reader.int64()) !== message[number]) continue;
      rest[number] = 0;
    } else if (text) {
      if (reader.string() !== message[text]) continue;
      rest[text] = '';
    } else {
      reader.skip(tag);
    }
    kept.push(reader.since(start));
  }
  return Buffer.concat(kept);
}

function upperBound(message: TaskMessage, headers: readonly Header[]): number {
  let bound =
    NUMBER_FIELDS * NUMBER_BOUND +
    textBound(message.type) +
    bytesBound(message.payload) +
    textBound(message.id) +
    textBound(message.queue) +
    textBound(message.errorMsg) +
    textBound(message.uniqueKey) +
    textBound(message.groupKey);
  for (const [key, value] of headers) bound += NESTED_BOUND + textBound(key) + textBound(value);
  return bound;
}
