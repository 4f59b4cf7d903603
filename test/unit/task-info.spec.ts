import { describe, expect, it } from 'vitest';
import { type TaskStanding, toTaskInfo } from '../../lib/task/info.js';
import { message } from '../support/messages.js';

describe('toTaskInfo', () => {
  it('turns seconds into milliseconds and dates, and 0 into undefined', () => {
    const stored = message({
      id: 'id1',
      type: 't',
      queue: 'q',
      payload: Buffer.from('p'),
      retried: 2,
      errorMsg: 'boom',
      lastFailedAt: 1_700_000_000,
      timeout: 30,
      deadline: 1_700_003_600,
      retention: 3600,
      completedAt: 1_700_000_100,
      groupKey: 'g',
      headers: { a: 'b' },
    });
    const standing = {
      ...({ state: 'completed' } as const),
      nextProcessAt: 5,
      pendingSince: 7,
      result: Buffer.from('r'),
      isOrphaned: true,
    };
    expect(toTaskInfo(stored, standing)).toEqual({
      id: 'id1',
      type: 't',
      queue: 'q',
      payload: Buffer.from('p'),
      headers: { a: 'b' },
      state: 'completed',
      maxRetry: 25,
      retried: 2,
      lastErr: 'boom',
      lastFailedAt: new Date(1_700_000_000_000),
      timeout: 30_000,
      deadline: new Date(1_700_003_600_000),
      group: 'g',
      nextProcessAt: new Date(5),
      pendingSince: new Date(7),
      isOrphaned: true,
      retention: 3_600_000,
      completedAt: new Date(1_700_000_100_000),
      result: Buffer.from('r'),
    });
  });

  it('has what its handler has said, in JSON, too', () => {
    const notes = {
      progress: '[5,0.5]',
      log: ['[[6,"a"]]', '[[7,"b"]]'],
      logDropped: 2,
      chunks: ['[1,"x"]', '[null]'],
    };
    const info = toTaskInfo(message(), { state: 'active', nextProcessAt: undefined, notes });
    expect(info.progress).toEqual({ fraction: 0.5, at: new Date(5) });
    expect(info.log).toEqual({
      lines: [
        { at: new Date(6), text: 'a' },
        { at: new Date(7), text: 'b' },
      ],
      dropped: 2,
    });
    expect(info.chunks).toEqual([1, 'x', null]);
    expect(info.toJSON()).toMatchObject({
      progress: { fraction: 0.5, at: '1970-01-01T00:00:00.005Z' },
      log: { lines: [{ text: 'a', at: '1970-01-01T00:00:00.006Z' }, { text: 'b' }], dropped: 2 },
      chunks: [1, 'x', null],
    });
    const damaged = { progress: '{}', log: ['x'], logDropped: 0, chunks: ['1'] };
    const other = toTaskInfo(message(), { state: 'active', nextProcessAt: undefined, notes: damaged });
    expect([other.progress, other.log, other.chunks]).toEqual([undefined, { lines: [], dropped: 0 }, []]);
  });

  it('knows when it was enqueued from an id that our client has made', () => {
    const at = (id: string) => toTaskInfo(message({ id }), { state: 'pending', nextProcessAt: undefined });
    const made = at('018bcfe5-687b-7abc-8abc-0123456789ab');
    expect(made.enqueuedAt).toEqual(new Date(1_700_000_000_123));
    expect(made.toJSON()).toMatchObject({ enqueuedAt: '2023-11-14T22:13:20.123Z' });
    expect(at('order-17').enqueuedAt).toBeUndefined();
    expect(at('order-17').toJSON()).not.toHaveProperty('enqueuedAt');
  });

  it('is empty where there is nothing', () => {
    const info = toTaskInfo(message(), { state: 'active', nextProcessAt: undefined, result: Buffer.alloc(0) });
    expect(info).toMatchObject({ headers: {}, lastErr: '', group: '', isOrphaned: false, retention: 0 });
    for (const key of ['lastFailedAt', 'deadline', 'completedAt', 'nextProcessAt', 'result'] as const) {
      expect(info[key]).toBeUndefined();
    }
  });

  it('shows a time beyond a Date as the last possible one', () => {
    const info = toTaskInfo(message({ deadline: 2 ** 53 }), { state: 'pending', nextProcessAt: 0 });
    expect(info.deadline).toEqual(new Date(8.64e15));
  });

  describe('as JSON', () => {
    const json = (payload: Buffer | string, more: Partial<TaskStanding> = {}) =>
      JSON.parse(
        JSON.stringify(
          toTaskInfo(message({ id: 'id1', type: 't', payload: Buffer.from(payload), headers: { token: 'secret' } }), {
            state: 'pending',
            nextProcessAt: 5,
            ...more,
          }),
        ),
      ) as object;

    it('has the payload as the value it is, times as text, and nothing where there is nothing', () => {
      expect(json('{"userId":42}', { result: Buffer.from('"sent"') })).toEqual({
        id: 'id1',
        queue: 'default',
        type: 't',
        state: 'pending',
        payload: { userId: 42 },
        payloadEncoding: 'json',
        maxRetry: 25,
        retried: 0,
        timeout: 1_800_000,
        nextProcessAt: '1970-01-01T00:00:00.005Z',
        isOrphaned: false,
        retention: 0,
        result: 'sent',
        resultEncoding: 'json',
      });
      expect(json('')).not.toHaveProperty('payload');
    });

    it('does not show headers, which may carry credentials', () => {
      expect(JSON.stringify(json('{}'))).not.toContain('secret');
    });

    it.each([
      ['text that is no JSON', 'a < b', 'a < b', 'utf8'],
      ['bytes that are no text', Buffer.from([0xff, 0]), '/wA=', 'base64'],
      ['a number JavaScript cannot hold', '{"id":9007199254740993}', '{"id":9007199254740993}', 'utf8'],
      ['a number that is too large', '[1e999]', '[1e999]', 'utf8'],
      ['such digits in a text', '["9007199254740993 \\" 1"]', ['9007199254740993 " 1'], 'json'],
      ['a long fraction', '0.12345678901234567', Number('0.12345678901234567'), 'json'],
      ['null', 'null', null, 'json'],
    ])('shows %s as it is, with its encoding', (_, payload, shown, encoding) => {
      expect(json(payload)).toMatchObject({ payload: shown, payloadEncoding: encoding });
    });

    it('shares one function among all tasks, which comparisons and copies ignore', () => {
      const info = toTaskInfo(message(), { state: 'pending', nextProcessAt: 5 });
      expect(Object.keys(info)).not.toContain('toJSON');
      expect(structuredClone({ ...info, payload: '' })).not.toHaveProperty('toJSON');
    });
  });
});
