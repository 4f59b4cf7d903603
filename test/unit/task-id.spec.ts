import { describe, expect, it } from 'vitest';
import { newTaskId, timeOfTaskId } from '../../lib/task/task-id.js';

const NOW = 1_700_000_000_123;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('newTaskId', () => {
  it('makes UUIDs of version 7, all different', () => {
    const ids = Array.from({ length: 5_000 }, (_, index) => newTaskId(NOW + (index % 3)));
    expect(ids.filter((id) => !UUID_V7.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('uses every digit at each random place', () => {
    const seen = Array.from({ length: 36 }, () => new Set<string>());
    for (let n = 0; n < 2_000; n++) [...newTaskId(NOW)].forEach((digit, place) => seen[place]!.add(digit));
    const counts = seen.map(({ size }) => size);
    expect(counts.slice(0, 15)).toEqual(Array.from({ length: 15 }, () => 1));
    expect(counts.slice(15).join()).toBe('16,16,16,1,4,16,16,16,1,16,16,16,16,16,16,16,16,16,16,16,16');
  });

  it('sorts by time', () => {
    expect(newTaskId(NOW) < newTaskId(NOW + 1)).toBe(true);
  });
});

describe('timeOfTaskId', () => {
  it('is the time of the call, in whole milliseconds', () => {
    expect([NOW, NOW + 0.9, 1e12, 4_102_444_799_999].map((now) => timeOfTaskId(newTaskId(now)))).toEqual([
      NOW,
      NOW,
      1e12,
      4_102_444_799_999,
    ]);
  });

  it.each([
    ['of a UUID v4, as Go makes them', '018bcfe5-687b-4abc-8abc-0123456789ab'],
    ['of another variant', '018bcfe5-687b-7abc-cabc-0123456789ab'],
    ['of capitals, which nobody here writes', '018BCFE5-687B-7ABC-8ABC-0123456789AB'],
    ['of an id of the application', 'order-17'],
    ['of a part of one', '018bcfe5-687b-7abc-8abc-0123456789ab~3'],
    ['of a time before there was asynq', newTaskId(0)],
    ['of a time that no clock shows yet', newTaskId(2 ** 50)],
    ['of a time before 1970', newTaskId(-5)],
  ])('is unknown %s', (_, id) => {
    expect(timeOfTaskId(id)).toBeUndefined();
  });
});
