import { describe, expect, it } from 'vitest';
import { parseSpec } from '../../lib/cron/parse.js';
import { InvalidScheduleError } from '../../lib/errors.js';

const NEW_YORK = 'America/New_York';
const SAO_PAULO = 'America/Sao_Paulo';

/** Wire-protocol A.6, taken from a running Go: spec, zone, from, next. */
const FIRINGS: readonly (readonly [string, string, string, string | undefined])[] = [
  ['30 2 * * *', NEW_YORK, '2024-03-10T00:00-05:00', '2024-03-11T02:30-04:00'],
  ['30 1 * * *', NEW_YORK, '2024-11-03T01:30-04:00', '2024-11-03T01:30-05:00'],
  ['*/30 * * * *', NEW_YORK, '2024-03-10T01:45-05:00', '2024-03-10T03:00-04:00'],
  ['0 * * * *', NEW_YORK, '2024-11-03T01:00-04:00', '2024-11-03T01:00-05:00'],
  ['0 0 * * *', SAO_PAULO, '2018-11-03T12:00-03:00', '2018-11-05T00:00-02:00'],
  ['CRON_TZ=America/New_York 30 9 * * *', 'UTC', '2024-07-01T00:00Z', '2024-07-01T13:30Z'],
  ['TZ=America/New_York 30 9 * * *', 'Asia/Tokyo', '2024-07-01T00:00Z', '2024-07-01T13:30Z'],
  ['0 0 31 * *', 'UTC', '2024-01-31T00:00Z', '2024-03-31T00:00Z'],
  ['0 0 29 2 *', 'UTC', '2024-03-01T00:00Z', '2028-02-29T00:00Z'],
  ['0 0 13 * 5', 'UTC', '2024-09-01T00:00Z', '2024-09-06T00:00Z'],
  ['0 0 ? * 5', 'UTC', '2024-09-01T00:00Z', '2024-09-06T00:00Z'],
  ['0 0 */2 * 5', 'UTC', '2024-09-01T00:00Z', '2024-09-03T00:00Z'],
  ['0 0 1-31 * 5', 'UTC', '2024-09-01T00:00Z', '2024-09-02T00:00Z'],
  ['0 0 */1 * 5', 'UTC', '2024-09-01T00:00Z', '2024-09-06T00:00Z'],
  ['5/20 * * * *', 'UTC', '2024-01-01T00:50Z', '2024-01-01T01:05Z'],
  ['@every 90s', 'UTC', '2024-01-01T00:00:00.500Z', '2024-01-01T00:01:30Z'],
  ['@every -5s', 'UTC', '2024-01-01T00:00Z', '2024-01-01T00:00:01Z'],
  ['@every 1.9s', 'UTC', '2024-01-01T00:00Z', '2024-01-01T00:00:01Z'],
  ['@weekly', 'UTC', '2024-09-01T00:00Z', '2024-09-08T00:00Z'],
  ['@yearly', 'UTC', '2024-09-01T00:00Z', '2025-01-01T00:00Z'],
  ['@annually', 'UTC', '2024-09-01T00:00Z', '2025-01-01T00:00Z'],
  ['@monthly', 'UTC', '2024-09-01T00:00Z', '2024-10-01T00:00Z'],
  ['@daily', NEW_YORK, '2024-09-01T00:00Z', '2024-09-01T04:00Z'],
  ['@midnight', 'UTC', '2024-09-01T00:00Z', '2024-09-02T00:00Z'],
  ['@hourly', 'UTC', '2024-09-01T00:00Z', '2024-09-01T01:00Z'],
  ['*/70 * * * *', 'UTC', '2024-09-01T00:00Z', '2024-09-01T01:00Z'],
  ['1,,2 * * * *', 'UTC', '2024-09-01T00:01Z', '2024-09-01T00:02Z'],
  ['  0 0 * JAN-mar Sun,tue  ', 'UTC', '2024-09-01T00:00Z', '2025-01-05T00:00Z'],
  ['0 0 30 2 *', 'UTC', '2024-01-01T00:00Z', undefined],
  [', * * * *', 'UTC', '2024-01-01T00:00Z', undefined],
];

const ERRORS: readonly (readonly [string, string])[] = [
  ['* * * * * *', 'expected exactly 5 fields, found 6: [* * * * * *]'],
  ['', 'empty spec string'],
  [' ', 'expected exactly 5 fields, found 0: []'],
  [' @daily', 'expected exactly 5 fields, found 1: [@daily]'],
  ['60 * * * *', 'end of range (60) above maximum (59): 60'],
  ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
  ['5-1 * * * *', 'beginning of range (5) beyond end of range (1): 5-1'],
  ['*/0 * * * *', 'step of range should be a positive number: */0'],
  ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
  ['1/2/3 * * * *', 'too many slashes: 1/2/3'],
  ['* * L * *', 'failed to parse int from L: strconv.Atoi: parsing "L": invalid syntax'],
  ['* * * * 7', 'end of range (7) above maximum (6): 7'],
  ['*/-2 * * * *', 'negative number (-2) not allowed: -2'],
  [
    '99999999999999999999 * * * *',
    'failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range',
  ],
  ['@reboot', 'unrecognized descriptor: @reboot'],
  ['@Daily', 'unrecognized descriptor: @Daily'],
  ['@constructor', 'unrecognized descriptor: @constructor'],
  ['@every 1x', 'failed to parse duration @every 1x: time: unknown unit "x" in duration "1x"'],
  ['TZ=Nowhere/X * * * * *', 'provided bad location Nowhere/X: unknown time zone Nowhere/X'],
  ['TZ=PST * * * * *', 'provided bad location PST: unknown time zone PST'],
  ['TZ=europe/berlin * * * * *', 'provided bad location europe/berlin: unknown time zone europe/berlin'],
  ['TZ=../x * * * * *', 'provided bad location ../x: time: invalid location name'],
  // Go panics here.
  ['TZ=UTC', 'no schedule after the zone: TZ=UTC; write it after a space'],
];

describe('specs', () => {
  it.each(FIRINGS)('%s in %s after %s: %s', (spec, location, from, next) => {
    const found = parseSpec(spec, { location }).next(Date.parse(from));
    expect(found === undefined ? undefined : new Date(found).toISOString()).toBe(
      next === undefined ? undefined : new Date(next).toISOString(),
    );
  });

  it.each(ERRORS)('%s: %s', (spec, text) => {
    const parse = () => parseSpec(spec);
    expect(parse).toThrow(InvalidScheduleError);
    expect(parse).toThrow(expect.objectContaining({ message: text }));
  });

  it('read TZ=Local, and an empty name, like Go', () => {
    const at = Date.parse('2024-07-01T00:00Z');
    const options = { location: 'Asia/Tokyo' };
    expect(parseSpec('TZ=Local 30 9 * * *', options).next(at)).toBe(Date.parse('2024-07-01T00:30Z'));
    expect(parseSpec('TZ= 30 9 * * *', options).next(at)).toBe(Date.parse('2024-07-01T09:30Z'));
  });

  it('compute the rarest times of a year quickly', () => {
    const started = performance.now();
    for (const spec of ['0 0 30 2 *', '0 0 29 2 1', '59 23 31 12 *']) {
      const schedule = parseSpec(spec, { location: 'Europe/Berlin' });
      for (let at = 0, firings = 0; firings < 20; firings++) {
        const next = schedule.next(at);
        expect(next ?? Infinity).toBeGreaterThan(at);
        at = next ?? at + 1;
      }
    }
    expect(performance.now() - started).toBeLessThan(5_000); // second by second it would be hours
  });
});
