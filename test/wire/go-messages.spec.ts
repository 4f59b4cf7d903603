import { describe, expect, it } from 'vitest';
import {
  decodeSchedulerEnqueueEvent,
  decodeSchedulerEntry,
  decodeServerInfo,
  decodeTaskMessage,
  decodeWorkerInfo,
  encodeSchedulerEnqueueEvent,
  encodeSchedulerEntry,
  encodeServerInfo,
  encodeTaskMessage,
  encodeWorkerInfo,
} from '../../lib/wire/codec.js';
import { bytesOf, hexOf, readGolden } from './golden.js';
import { zeroMessage } from '../support/messages.js';

/** Values in protobuf's JSON form: int64 as text, bytes as base64, timestamps in RFC 3339. */
type Value = Record<string, never>;

const NEVER = '0001-01-01T00:00:00Z';

const base64 = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64');
const time = (text: string | undefined): number => Date.parse(text ?? NEVER);
const maybe = (text: string | undefined): number | undefined => (text === NEVER ? undefined : time(text));

const codecs = {
  TaskMessage: {
    decode: decodeTaskMessage,
    encode: encodeTaskMessage,
    build: (v: Value) =>
      zeroMessage({
        type: v.type ?? '',
        payload: base64(v.payload),
        id: v.id ?? '',
        queue: v.queue ?? '',
        maxRetry: v.retry ?? 0,
        retried: v.retried ?? 0,
        errorMsg: v.error_msg ?? '',
        timeout: Number(v.timeout ?? 0),
        deadline: Number(v.deadline ?? 0),
        uniqueKey: v.unique_key ?? '',
        lastFailedAt: Number(v.last_failed_at ?? 0),
        retention: Number(v.retention ?? 0),
        completedAt: Number(v.completed_at ?? 0),
        groupKey: v.group_key ?? '',
        headers: v.headers,
      }),
  },
  ServerInfo: {
    decode: decodeServerInfo,
    encode: encodeServerInfo,
    build: (v: Value) => ({
      host: v.host ?? '',
      pid: v.pid ?? 0,
      serverId: v.server_id ?? '',
      concurrency: v.concurrency ?? 0,
      queues: v.queues ?? {},
      strictPriority: v.strict_priority ?? false,
      status: v.status ?? '',
      startTime: time(v.start_time),
      activeWorkerCount: v.active_worker_count ?? 0,
    }),
  },
  WorkerInfo: {
    decode: decodeWorkerInfo,
    encode: encodeWorkerInfo,
    build: (v: Value) => ({
      host: v.host ?? '',
      pid: v.pid ?? 0,
      serverId: v.server_id ?? '',
      taskId: v.task_id ?? '',
      taskType: v.task_type ?? '',
      taskPayload: base64(v.task_payload),
      queue: v.queue ?? '',
      startTime: time(v.start_time),
      deadline: time(v.deadline),
    }),
  },
  SchedulerEntry: {
    decode: decodeSchedulerEntry,
    encode: encodeSchedulerEntry,
    build: (v: Value) => ({
      id: v.id ?? '',
      spec: v.spec ?? '',
      taskType: v.task_type ?? '',
      taskPayload: base64(v.task_payload),
      enqueueOptions: v.enqueue_options ?? [],
      nextEnqueueTime: maybe(v.next_enqueue_time),
      prevEnqueueTime: maybe(v.prev_enqueue_time),
    }),
  },
  SchedulerEnqueueEvent: {
    decode: decodeSchedulerEnqueueEvent,
    encode: encodeSchedulerEnqueueEvent,
    build: (v: Value) => ({ taskId: v.task_id ?? '', enqueueTime: time(v.enqueue_time) }),
  },
};

interface Case {
  Name: string;
  Message: keyof typeof codecs;
  Value: Value;
  Hex: string;
}

describe("messages as Go's protobuf library writes them", () => {
  it.each(readGolden<Case[]>('messages'))('$Message: $Name', ({ Message, Value, Hex }) => {
    const { build, encode, decode } = codecs[Message];
    const value = build(Value);
    expect(hexOf((encode as (message: unknown) => Buffer)(value))).toBe(Hex);
    const { unknownFields: _exact, ...read } = decode(bytesOf(Hex)) as { unknownFields?: Buffer };
    expect(read).toEqual(value);
  });
});
