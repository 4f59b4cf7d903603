import { describe, expect, it } from 'vitest';
import { toTaskInfo } from '../../lib/task/info.js';
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
      ...{ nextProcessAt: 5, pendingSince: 7, result: Buffer.from('r'), isOrphaned: true },
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

  it('says nothing where there is nothing', () => {
    const info = toTaskInfo(message(), { state: 'active', nextProcessAt: undefined, result: Buffer.alloc(0) });
    expect(info).toMatchObject({ headers: {}, lastErr: '', group: '', isOrphaned: false, retention: 0 });
    for (const key of ['lastFailedAt', 'deadline', 'completedAt', 'nextProcessAt', 'result'] as const) {
      expect(info[key]).toBeUndefined();
    }
  });

  it('shows a time no Date can tell as the last one it can', () => {
    const info = toTaskInfo(message({ deadline: 2 ** 53 }), { state: 'pending', nextProcessAt: 0 });
    expect(info.deadline).toEqual(new Date(8.64e15));
  });
});
