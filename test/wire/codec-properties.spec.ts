import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { UndecodableMessageError } from '../../lib/errors.js';
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
import type { SchedulerEntry, ServerInfo, TaskMessage, WorkerInfo } from '../../lib/wire/message.js';
import { anyText } from './any-text.js';
import { bytesOf, hexOf, readGolden } from './golden.js';

const text = fc.oneof(anyText, fc.string({ minLength: 20, maxLength: 300 }), fc.constant('é'.repeat(43)));
const bytes = fc
  .oneof(fc.uint8Array(), fc.uint8Array({ minLength: 120, maxLength: 140 }))
  .map((value) => Buffer.from(value));
const int32 = fc.oneof(fc.integer(), fc.constantFrom(0, 1, 127, 128));
const int64 = fc.oneof(
  fc.constant(0),
  fc.integer(),
  fc.integer({ min: Number.MIN_SAFE_INTEGER + 1, max: Number.MAX_SAFE_INTEGER - 1 }),
);
const time = fc.integer({ min: -8.64e15, max: 8.64e15 });
const headers = fc.option(fc.dictionary(text, text, { minKeys: 1 }), { nil: undefined });

const taskMessages: fc.Arbitrary<TaskMessage> = fc.record({
  type: text,
  payload: bytes,
  id: text,
  queue: text,
  maxRetry: int32,
  retried: int32,
  errorMsg: text,
  timeout: int64,
  deadline: int64,
  uniqueKey: text,
  lastFailedAt: int64,
  retention: int64,
  completedAt: int64,
  groupKey: text,
  headers,
});

const serverInfos: fc.Arbitrary<ServerInfo> = fc.record({
  host: text,
  pid: int32,
  serverId: text,
  concurrency: int32,
  queues: fc.dictionary(text, int32),
  strictPriority: fc.boolean(),
  status: text,
  startTime: time,
  activeWorkerCount: int32,
});

const workerInfos: fc.Arbitrary<WorkerInfo> = fc.record({
  host: text,
  pid: int32,
  serverId: text,
  taskId: text,
  taskType: text,
  taskPayload: bytes,
  queue: text,
  startTime: time,
  deadline: time,
});

const schedulerEntries: fc.Arbitrary<SchedulerEntry> = fc.record({
  id: text,
  spec: text,
  taskType: text,
  taskPayload: bytes,
  enqueueOptions: fc.array(text),
  nextEnqueueTime: fc.option(time, { nil: undefined }),
  prevEnqueueTime: fc.option(time, { nil: undefined }),
});

describe('what is encoded is decoded to the same', () => {
  it('TaskMessage', () => {
    fc.assert(
      fc.property(taskMessages, (message) => {
        expect(decodeTaskMessage(encodeTaskMessage(message))).toEqual(message);
      }),
    );
  });

  it('ServerInfo', () => {
    fc.assert(
      fc.property(serverInfos, (info) => {
        expect(decodeServerInfo(encodeServerInfo(info))).toEqual(info);
      }),
    );
  });

  it('WorkerInfo', () => {
    fc.assert(
      fc.property(workerInfos, (info) => {
        expect(decodeWorkerInfo(encodeWorkerInfo(info))).toEqual(info);
      }),
    );
  });

  it('SchedulerEntry and SchedulerEnqueueEvent', () => {
    fc.assert(
      fc.property(schedulerEntries, text, time, (entry, taskId, enqueueTime) => {
        expect(decodeSchedulerEntry(encodeSchedulerEntry(entry))).toEqual(entry);
        const event = { taskId, enqueueTime };
        expect(decodeSchedulerEnqueueEvent(encodeSchedulerEnqueueEvent(event))).toEqual(event);
      }),
    );
  });

  it('after any number of later messages', () => {
    const sized = fc.tuple(taskMessages, fc.constantFrom(0, 1000, 9000, 70_000));
    fc.assert(
      fc.property(fc.array(sized, { minLength: 20, maxLength: 60 }), (list) => {
        const messages = list.map(([message, size], i) => ({ ...message, payload: Buffer.alloc(size, i) }));
        const copies: string[] = [];
        const encoded = messages.map((message) => {
          const stored = encodeTaskMessage(message);
          copies.push(hexOf(stored));
          return stored;
        });
        expect(encoded.map(hexOf)).toEqual(copies);
      }),
      { numRuns: 20 },
    );
  });
});

describe('bytes that may be anything', () => {
  const real = readGolden<{ Hex: string }[]>('messages').map(({ Hex }) => bytesOf(Hex));
  const decoders = [
    decodeTaskMessage,
    decodeServerInfo,
    decodeWorkerInfo,
    decodeSchedulerEntry,
    decodeSchedulerEnqueueEvent,
  ];

  function expectReadOrRefused(input: Buffer): void {
    for (const decode of decoders) {
      try {
        expect(decode(input)).toBeTypeOf('object');
      } catch (error) {
        expect(error).toBeInstanceOf(UndecodableMessageError);
      }
    }
  }

  it('are read or refused with UndecodableMessageError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (input) => {
        expectReadOrRefused(Buffer.from(input));
      }),
      { numRuns: 500 },
    );
  });

  it('even when they are nearly valid', () => {
    const damage = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }));
    fc.assert(
      fc.property(fc.constantFrom(...real), fc.array(damage, { maxLength: 4 }), fc.nat(), (message, changes, cut) => {
        const damaged = Buffer.from(message);
        for (const [at, byte] of changes) damaged[at % Math.max(1, damaged.length)] = byte;
        expectReadOrRefused(damaged.subarray(0, damaged.length - (cut % (damaged.length + 1))));
      }),
      { numRuns: 1000 },
    );
  });

  it.each<[string, number, number[]]>([
    ['groups in groups', 200_000, [0x0b]],
    ['empty headers', 200_000, [0x7a, 0]],
    ['empty options', 200_000, [0x2a, 0]],
    ['unknown fields', 100_000, [0x80, 1, 1]],
  ])(
    '%s by the hundred thousand are read in linear time: the square would take longer than the test may',
    (_, count, unit) => {
      expectReadOrRefused(Buffer.alloc(count * unit.length, Buffer.from(unit)));
    },
  );
});

describe('unknown fields', () => {
  /** Fields that asynq does not have: number from 16, any wire type. */
  const varint = fc.bigInt(0n, 2n ** 64n - 1n).map((value) => {
    const out: number[] = [];
    let rest = value;
    for (; rest > 127n; rest >>= 7n) out.push(Number(rest & 127n) | 128);
    return Buffer.from([...out, Number(rest)]);
  });
  const tag = (number: number, type: number): Buffer => {
    const value = number * 8 + type;
    return Buffer.from([(value & 127) | 128, value >> 7]);
  };
  const number = fc.integer({ min: 16, max: 2047 });
  const unknown = fc.oneof(
    fc.tuple(number, varint).map(([n, value]) => Buffer.concat([tag(n, 0), value])),
    fc
      .tuple(number, fc.uint8Array({ minLength: 8, maxLength: 8 }))
      .map(([n, value]) => Buffer.concat([tag(n, 1), value])),
    fc
      .tuple(number, fc.uint8Array({ maxLength: 100 }))
      .map(([n, value]) => Buffer.concat([tag(n, 2), Buffer.of(value.length), value])),
    fc
      .tuple(number, fc.uint8Array({ minLength: 4, maxLength: 4 }))
      .map(([n, value]) => Buffer.concat([tag(n, 5), value])),
    fc.tuple(number, varint).map(([n, value]) => Buffer.concat([tag(n, 3), tag(16, 0), value, tag(n, 4)])),
  );

  it('survive decode, change and encode, wherever they are', () => {
    fc.assert(
      fc.property(taskMessages, fc.array(unknown, { minLength: 1 }), fc.array(unknown), (message, before, after) => {
        const stored = Buffer.concat([...before, encodeTaskMessage(message), ...after]);
        const read = decodeTaskMessage(stored);
        const changed = {
          ...read,
          retried: read.maxRetry,
          errorMsg: 'boom',
          lastFailedAt: 1_700_000_000,
          completedAt: 0,
        };
        const rewritten = encodeTaskMessage(changed);
        const unknownFields = Buffer.concat([...before, ...after]);
        expect(hexOf(rewritten).endsWith(hexOf(unknownFields))).toBe(true);
        expect(decodeTaskMessage(rewritten)).toEqual({ ...changed, unknownFields });
      }),
    );
  });
});
