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
import type { SchedulerEntry, ServerInfo, TaskMessage, WorkerInfo } from '../../lib/wire/message.js';
import { bytesOf, hexOf } from './golden.js';
import { zeroMessage } from '../support/messages.js';

/** The vectors of appendix A of the protocol, byte for byte. */
describe('appendix A.1: TaskMessage', () => {
  it.each<[string, string, TaskMessage]>([
    ['all zero', '', zeroMessage()],
    [
      'every field',
      '0a0a656d61696c3a73656e64 12077b2261223a317d 1a03696431 220764656661756c74 2819 3002 3a04626f6f6d 40880e 4890fecfaa06' +
        '52236173796e713a7b64656661756c747d3a756e697175653a656d61696c3a73656e643a78 5880e2cfaa06 60901c 68e4e2cfaa06 72026731' +
        '7a060a016b120176 7a090a05656d7074791200',
      zeroMessage({
        type: 'email:send',
        payload: Buffer.from('{"a":1}'),
        headers: { k: 'v', empty: '' },
        id: 'id1',
        queue: 'default',
        maxRetry: 25,
        retried: 2,
        errorMsg: 'boom',
        lastFailedAt: 1_700_000_000,
        timeout: 1800,
        deadline: 1_700_003_600,
        uniqueKey: 'asynq:{default}:unique:email:send:x',
        groupKey: 'g1',
        retention: 3600,
        completedAt: 1_700_000_100,
      }),
    ],
    ['negative', '28ffffffffffffffffff01 40ffffffffffffffffff01', zeroMessage({ maxRetry: -1, timeout: -1 })],
    [
      'defaults',
      '0a0174 1a0178 220764656661756c74 2819 40880e',
      zeroMessage({ type: 't', id: 'x', queue: 'default', maxRetry: 25, timeout: 1800 }),
    ],
  ])('%s', (_, hex, message) => {
    expect(hexOf(encodeTaskMessage(message))).toBe(hexOf(bytesOf(hex)));
    expect(decodeTaskMessage(bytesOf(hex))).toEqual(message);
  });
});

describe('appendix A.2: monitoring messages', () => {
  // The vectors hold 901,234 nanoseconds more than a number of milliseconds can; `ours` is what we write.
  const theirs = '10f2ebdcc302';
  const ours = '1080eba5c302';
  const start = Date.parse('2024-01-02T03:04:05.678Z');
  const rounded = (hex: string): string => hexOf(bytesOf(hex)).replaceAll(theirs, ours);

  it('ServerInfo', () => {
    const hex =
      '0a0168 102a 1a03736964 200a 2a0b0a0764656661756c741001 3001 3a06616374697665 420c08a5facdac0610f2ebdcc302 4803';
    const info: ServerInfo = {
      host: 'h',
      pid: 42,
      serverId: 'sid',
      concurrency: 10,
      queues: { default: 1 },
      strictPriority: true,
      status: 'active',
      startTime: start,
      activeWorkerCount: 3,
    };
    expect(decodeServerInfo(bytesOf(hex))).toEqual(info);
    expect(hexOf(encodeServerInfo(info))).toBe(rounded(hex));
  });

  it('WorkerInfo', () => {
    const hex =
      '0a0168 102a 1a03736964 2203696431 2a0174 320170 3a0764656661756c74 420c08a5facdac0610f2ebdcc302 4a0c08ad88ceac0610f2ebdcc302';
    const info: WorkerInfo = {
      host: 'h',
      pid: 42,
      serverId: 'sid',
      taskId: 'id1',
      taskType: 't',
      taskPayload: Buffer.from('p'),
      queue: 'default',
      startTime: start,
      deadline: start + 30 * 60_000,
    };
    expect(decodeWorkerInfo(bytesOf(hex))).toEqual(info);
    expect(hexOf(encodeWorkerInfo(info))).toBe(rounded(hex));
  });

  it('SchedulerEntry', () => {
    const hex =
      '0a026531 1209406576657279203168 1a0174 220170 2a0a51756575652822712229 2a0b4d61785265747279283329' +
      '320c08a5facdac0610f2ebdcc302 3a0b088092b8c398feffffff01';
    const entry: SchedulerEntry = {
      id: 'e1',
      spec: '@every 1h',
      taskType: 't',
      taskPayload: Buffer.from('p'),
      enqueueOptions: ['Queue("q")', 'MaxRetry(3)'],
      nextEnqueueTime: start,
      prevEnqueueTime: undefined,
    };
    expect(decodeSchedulerEntry(bytesOf(hex))).toEqual(entry);
    expect(hexOf(encodeSchedulerEntry(entry))).toBe(rounded(hex));
  });

  it('SchedulerEnqueueEvent', () => {
    const hex = '0a03696431 120c08a5facdac0610f2ebdcc302';
    expect(decodeSchedulerEnqueueEvent(bytesOf(hex))).toEqual({ taskId: 'id1', enqueueTime: start });
    expect(hexOf(encodeSchedulerEnqueueEvent({ taskId: 'id1', enqueueTime: start }))).toBe(rounded(hex));
  });
});
