import type { SchedulerEnqueueEvent, SchedulerEntry, ServerInfo, WorkerInfo } from './message.js';
import { NO_BYTES, ProtoReader } from './proto-reader.js';
import { bytesBound, NESTED_BOUND, NUMBER_BOUND, ProtoWriter, textBound } from './proto-writer.js';
import { readOptionalTimestamp, readTimestamp, TIMESTAMP_BOUND, writeTimestamp } from './timestamp.js';

/*
 * What servers and schedulers publish about themselves (wire-protocol section 2.2). Tags are field
 * number × 8 + wire type. These messages are never rewritten, so unknown fields are skipped. A
 * missing timestamp means the epoch, as in Go.
 */

type Draft<T> = { -readonly [K in keyof T]: T[K] extends readonly string[] ? string[] : T[K] };
type Fields<T> = Readonly<Record<number, (draft: Draft<T>, reader: ProtoReader) => void>>;

function readFields<T>(bytes: Buffer, name: string, fields: Fields<T>, draft: Draft<T>): T {
  const reader = new ProtoReader(bytes, name);
  while (reader.more()) {
    const tag = reader.tag();
    const read = fields[tag];
    if (read) read(draft, reader);
    else reader.skip(tag);
  }
  return draft as T;
}

const SERVER_INFO: Fields<ServerInfo> = {
  10: (draft, reader) => (draft.host = reader.string()),
  16: (draft, reader) => (draft.pid = reader.int32()),
  26: (draft, reader) => (draft.serverId = reader.string()),
  32: (draft, reader) => (draft.concurrency = reader.int32()),
  42: (draft, reader) => readPriority(reader, draft.queues),
  48: (draft, reader) => (draft.strictPriority = reader.bool()),
  58: (draft, reader) => (draft.status = reader.string()),
  66: (draft, reader) => (draft.startTime = readTimestamp(reader)),
  72: (draft, reader) => (draft.activeWorkerCount = reader.int32()),
};

/** `queues` is in the order of its keys; Go's is random. */
export function encodeServerInfo(info: ServerInfo): Buffer {
  const queues = Object.entries(info.queues);
  const texts = textBound(info.host) + textBound(info.serverId) + textBound(info.status);
  let bound = texts + TIMESTAMP_BOUND + 4 * NUMBER_BOUND;
  for (const [name] of queues) bound += NESTED_BOUND + textBound(name) + NUMBER_BOUND;
  const writer = new ProtoWriter(bound);
  writer.string(10, info.host);
  writer.int32(16, info.pid);
  writer.string(26, info.serverId);
  writer.int32(32, info.concurrency);
  for (const [name, priority] of queues) writePriority(writer, name, priority);
  writer.bool(48, info.strictPriority);
  writer.string(58, info.status);
  writeTimestamp(writer, 66, info.startTime);
  writer.int32(72, info.activeWorkerCount);
  return writer.finish();
}

/** `queues` has no prototype, so that a queue may have any name. @throws UndecodableMessageError */
export function decodeServerInfo(bytes: Buffer): ServerInfo {
  return readFields(bytes, 'asynq.ServerInfo', SERVER_INFO, {
    host: '',
    pid: 0,
    serverId: '',
    concurrency: 0,
    queues: Object.create(null) as Record<string, number>,
    strictPriority: false,
    status: '',
    startTime: 0,
    activeWorkerCount: 0,
  });
}

function writePriority(writer: ProtoWriter, queue: string, priority: number): void {
  const mark = writer.open(42);
  writer.entryString(10, queue);
  writer.entryInt32(16, priority);
  writer.close(mark);
}

function readPriority(reader: ProtoReader, into: Record<string, number>): void {
  const outer = reader.enter();
  let queue = '';
  let priority = 0;
  while (reader.more()) {
    const tag = reader.tag();
    if (tag === 10) queue = reader.string();
    else if (tag === 16) priority = reader.int32();
    else reader.skip(tag);
  }
  reader.leave(outer);
  into[queue] = priority;
}

const WORKER_INFO: Fields<WorkerInfo> = {
  10: (draft, reader) => (draft.host = reader.recurringString()),
  16: (draft, reader) => (draft.pid = reader.int32()),
  26: (draft, reader) => (draft.serverId = reader.recurringString()),
  34: (draft, reader) => (draft.taskId = reader.string()),
  42: (draft, reader) => (draft.taskType = reader.recurringString()),
  50: (draft, reader) => (draft.taskPayload = reader.view()),
  58: (draft, reader) => (draft.queue = reader.recurringString()),
  66: (draft, reader) => (draft.startTime = readTimestamp(reader)),
  74: (draft, reader) => (draft.deadline = readTimestamp(reader)),
};

export function encodeWorkerInfo(info: WorkerInfo): Buffer {
  const server = textBound(info.host) + textBound(info.serverId) + NUMBER_BOUND;
  const task = textBound(info.taskId) + textBound(info.taskType) + bytesBound(info.taskPayload) + textBound(info.queue);
  const writer = new ProtoWriter(server + task + 2 * TIMESTAMP_BOUND);
  writer.string(10, info.host);
  writer.int32(16, info.pid);
  writer.string(26, info.serverId);
  writer.string(34, info.taskId);
  writer.string(42, info.taskType);
  writer.bytes(50, info.taskPayload);
  writer.string(58, info.queue);
  writeTimestamp(writer, 66, info.startTime);
  writeTimestamp(writer, 74, info.deadline);
  return writer.finish();
}

/** `taskPayload` is a view of `bytes`. @throws UndecodableMessageError */
export function decodeWorkerInfo(bytes: Buffer): WorkerInfo {
  return readFields(bytes, 'asynq.WorkerInfo', WORKER_INFO, {
    host: '',
    pid: 0,
    serverId: '',
    taskId: '',
    taskType: '',
    taskPayload: NO_BYTES,
    queue: '',
    startTime: 0,
    deadline: 0,
  });
}

const SCHEDULER_ENTRY: Fields<SchedulerEntry> = {
  10: (draft, reader) => (draft.id = reader.string()),
  18: (draft, reader) => (draft.spec = reader.string()),
  26: (draft, reader) => (draft.taskType = reader.string()),
  34: (draft, reader) => (draft.taskPayload = reader.view()),
  42: (draft, reader) => draft.enqueueOptions.push(reader.string()),
  50: (draft, reader) => (draft.nextEnqueueTime = readOptionalTimestamp(reader)),
  58: (draft, reader) => (draft.prevEnqueueTime = readOptionalTimestamp(reader)),
};

export function encodeSchedulerEntry(entry: SchedulerEntry): Buffer {
  let bound = textBound(entry.id) + textBound(entry.spec) + textBound(entry.taskType) + bytesBound(entry.taskPayload);
  for (const option of entry.enqueueOptions) bound += textBound(option);
  const writer = new ProtoWriter(bound + 2 * TIMESTAMP_BOUND);
  writer.string(10, entry.id);
  writer.string(18, entry.spec);
  writer.string(26, entry.taskType);
  writer.bytes(34, entry.taskPayload);
  for (const option of entry.enqueueOptions) writer.entryString(42, option);
  writeTimestamp(writer, 50, entry.nextEnqueueTime);
  writeTimestamp(writer, 58, entry.prevEnqueueTime);
  return writer.finish();
}

/** `taskPayload` is a view of `bytes`. @throws UndecodableMessageError */
export function decodeSchedulerEntry(bytes: Buffer): SchedulerEntry {
  return readFields(bytes, 'asynq.SchedulerEntry', SCHEDULER_ENTRY, {
    id: '',
    spec: '',
    taskType: '',
    taskPayload: NO_BYTES,
    enqueueOptions: [],
    nextEnqueueTime: 0,
    prevEnqueueTime: 0,
  });
}

const SCHEDULER_ENQUEUE_EVENT: Fields<SchedulerEnqueueEvent> = {
  10: (draft, reader) => (draft.taskId = reader.string()),
  18: (draft, reader) => (draft.enqueueTime = readTimestamp(reader)),
};

export function encodeSchedulerEnqueueEvent(event: SchedulerEnqueueEvent): Buffer {
  const writer = new ProtoWriter(textBound(event.taskId) + TIMESTAMP_BOUND);
  writer.string(10, event.taskId);
  writeTimestamp(writer, 18, event.enqueueTime);
  return writer.finish();
}

/** @throws UndecodableMessageError */
export function decodeSchedulerEnqueueEvent(bytes: Buffer): SchedulerEnqueueEvent {
  return readFields(bytes, 'asynq.SchedulerEnqueueEvent', SCHEDULER_ENQUEUE_EVENT, { taskId: '', enqueueTime: 0 });
}
