import { describe, expect, it } from 'vitest';
import { StepsWaits } from './steps-waits.js';

const ORDER = '7.1';
const [A, B] = [101, 102];
const second = 1_000;

/** An order that server A begins at second 1; servers are up. */
function orderOfA(): StepsWaits {
  const waits = new StepsWaits(10);
  for (const pid of [A, B]) waits.server(pid, true, 0);
  waits.hear(1 * second, 'claimed', ORDER, '', A);
  waits.hear(1 * second, 'began', ORDER, 'default', A);
  return waits;
}

const explain = (waits: StepsWaits, to: number) => waits.explain(ORDER, 1 * second, to * second);

describe('what an order waited for', () => {
  it('is its dead server, until its lease has ended and somebody recovers it', () => {
    const waits = orderOfA();
    waits.server(A, false, 2 * second);
    waits.leaseEnded(ORDER, 10, 22 * second);
    waits.hear(30 * second, 'recovered', ORDER, 'retry', B);
    waits.hear(31 * second, 'began', ORDER, 'default', B);
    const { text, unexplained } = explain(waits, 32);
    expect(text).toBe(
      'order its server was dead 20.0 s, order its lease had ended 8.0 s, order running 2.0 s, order in line 1.0 s ' +
        '(1 × order claimed, 2 × order began, 1 × order server killed, 1 × order lease ended, 1 × order recovered retry)',
    );
    expect(unexplained).toEqual([]);
  });

  it('is not explained by a server that lives', () => {
    const { unexplained } = explain(orderOfA(), 41);
    expect(unexplained).toEqual(['7.1: running, for 40.0 s from 1000']);
  });

  it('is not explained by Redis, when it was away for a while only', () => {
    const waits = orderOfA();
    for (const at of [10, 20, 30]) {
      waits.redis(false, at * second);
      waits.redis(true, (at + 1) * second);
    }
    expect(explain(waits, 31).unexplained).toEqual([]);
    expect(explain(waits, 38).unexplained).toEqual(['7.1: running, for 34.0 s from 1000']);
  });

  it('is the task that it has called, in the line of its queue while others of it begin', () => {
    const waits = orderOfA();
    waits.hear(2 * second, 'ended', ORDER, 'suspended', A);
    expect(explain(waits, 42).unexplained).toEqual([
      '7.1~invoice was in line for 40.0 s from 2000, while 0 others began',
    ]);
    waits.hear(20 * second, 'began', '7.2~invoice', 'other', B);
    expect(explain(waits, 42).unexplained).toEqual([]);
    for (let n = 0; n < 30; n++) waits.hear(21 * second, 'began', `8.${n}~invoice`, 'other', B);
    expect(explain(waits, 42).unexplained).toEqual([
      '7.1~invoice was in line for 40.0 s from 2000, while 31 others began',
    ]);
  });

  it('is not a task that it has not called yet', () => {
    const waits = orderOfA();
    waits.hear(2 * second, 'ended', ORDER, 'suspended', A);
    waits.hear(3 * second, 'began', `${ORDER}~invoice`, 'other', A);
    waits.server(A, false, 4 * second);
    for (const at of [5, 10, 15]) waits.state(`${ORDER}~stamp`, 'gone', at * second);
    waits.leaseEnded(`${ORDER}~invoice`, 10, 24 * second);
    waits.hear(34 * second, 'began', `${ORDER}~invoice`, 'other', B);
    const { text, unexplained } = explain(waits, 40);
    expect(text).toMatch(
      /^~invoice its server was dead 20\.0 s, ~invoice its lease had ended 10\.0 s, ~invoice running 7\.0 s,/,
    );
    expect(unexplained).toEqual([]);
  });

  it('is a lease that Redis has given, when its reply was lost', () => {
    const waits = orderOfA();
    waits.hear(2 * second, 'ended', ORDER, 'suspended', A);
    waits.state(`${ORDER}~invoice`, 'active', 12 * second);
    waits.leaseEnded(`${ORDER}~invoice`, 10, 32 * second);
    waits.hear(40 * second, 'recovered', `${ORDER}~invoice`, 'retry', B);
    const { text, unexplained } = explain(waits, 41);
    expect(text).toContain(
      '~invoice its claim was lost 20.0 s, ~invoice in line 11.0 s, ~invoice its lease had ended 8.0 s',
    );
    expect(unexplained).toEqual([]);
  });

  it('is a lease of its own task whose reply was lost, after it was suspended', () => {
    const waits = orderOfA();
    waits.hear(2 * second, 'ended', ORDER, 'suspended', A);
    waits.hear(3 * second, 'began', `${ORDER}~invoice`, 'other', A);
    waits.hear(4 * second, 'ended', `${ORDER}~invoice`, 'done', A);
    waits.leaseEnded(ORDER, 10, 40 * second);
    expect(explain(waits, 41).text).toContain('order its claim was lost 18.0 s');
    waits.state(ORDER, 'active', 14 * second);
    expect(explain(waits, 41).text).toContain('order its claim was lost 26.0 s');
    expect(explain(waits, 41).unexplained).toEqual([]);
  });

  it('is not the server of a call that has ended before it died', () => {
    for (const learn of [
      (waits: StepsWaits) => waits.state(`${ORDER}~invoice`, 'gone', 13 * second),
      (waits: StepsWaits) => waits.answered(`${ORDER}~invoice`, 13 * second),
    ]) {
      const waits = orderOfA();
      waits.hear(2 * second, 'ended', ORDER, 'suspended', A);
      waits.hear(3 * second, 'began', `${ORDER}~invoice`, 'other', B);
      waits.server(B, false, 4 * second);
      learn(waits);
      waits.hear(20 * second, 'claimed', ORDER, '', A);
      expect(explain(waits, 45).text).toContain('~invoice its server was dead 9.0 s');
      expect(explain(waits, 45).unexplained).toEqual([]);
    }
  });

  it('is a thread, for a minute at most', () => {
    const waits = orderOfA();
    waits.hear(2 * second, 'ended', ORDER, 'suspended', A);
    waits.hear(2 * second, 'began', `${ORDER}~stamp`, 'threads', A);
    waits.hear(2 * second, 'ended', `${ORDER}~invoice`, 'done', A);
    expect(explain(waits, 60).unexplained).toEqual([]);
    expect(explain(waits, 70).unexplained).toEqual(['7.1~stamp: waiting for a thread, for 68.0 s from 2000']);
  });

  it('is what a server said before it was killed, though that is read later', () => {
    const waits = new StepsWaits(10);
    waits.server(A, true, 0);
    waits.server(B, true, 0);
    waits.server(A, false, 3 * second);
    waits.hear(2 * second, 'claimed', ORDER, '', A);
    expect(waits.explain(ORDER, 2 * second, 5 * second).text).toContain('its server was dead 2.0 s');
  });
});
