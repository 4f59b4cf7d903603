import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseSpec } from '../../lib/cron/parse.js';

/** Zones and the moments at which their clocks did something odd: a day left out or repeated, odd offsets, no midnight. */
const CHANGES = [
  ['Pacific/Apia', '2011-12-30T10:00Z'],
  ['Pacific/Fakaofo', '2011-12-30T11:00Z'],
  ['Pacific/Kwajalein', '1993-08-21T12:00Z'],
  ['Pacific/Kiritimati', '1994-12-31T10:00Z'],
  ['Pacific/Kanton', '1994-12-31T11:00Z'],
  ['Asia/Manila', '1844-12-31T15:56:08Z'],
  ['America/Juneau', '1867-10-18T09:00Z'],
  ['Africa/Monrovia', '1972-01-07T00:44:30Z'],
  ['Africa/Cairo', '2014-05-15T22:00Z'],
  ['America/Sao_Paulo', '2018-11-04T03:00Z'],
  ['Antarctica/Casey', '2018-03-10T17:00Z'],
  ['Asia/Beirut', '2021-03-27T22:00Z'],
] as const;
const DAY = 86_400_000;
const YEAR = 366 * DAY;

/** Found beside robfig/cron, which never returns where it has to step over a day that is left out. */
const STEPS = [
  ['@monthly', 'Pacific/Apia', '2011-12-05T00:00Z', '2012-01-01T00:00+14:00'],
  ['@monthly', 'Pacific/Fakaofo', '2011-12-11T12:12:09Z', '2012-01-01T00:00+13:00'],
  ['0 0 31 * *', 'Pacific/Apia', '2011-12-20T00:00Z', '2011-12-31T00:00+14:00'],
  ['0 0 30 12 *', 'Pacific/Apia', '2011-12-20T00:00Z', '2012-12-30T00:00+14:00'],
  ['@weekly', 'Pacific/Kwajalein', '1993-08-20T07:35:47Z', '1993-08-22T00:00+12:00'],
  ['0 0 31 * *', 'Pacific/Kiritimati', '1994-12-21T19:10:15Z', '1995-01-31T00:00+14:00'],
] as const;

const number = (least: number, most: number) =>
  fc.oneof(fc.constant('*'), fc.integer({ min: least, max: most }).map(String));
const anySpec = fc
  .tuple(number(0, 59), number(0, 23), number(1, 31), number(1, 12), number(0, 6))
  .map((fields) => fields.join(' '));

describe('a zone that skips a day', () => {
  it.each(STEPS)('%s in %s after %s: %s', (spec, location, from, next) => {
    const found = parseSpec(spec, { location }).next(Date.parse(from));
    expect(found && new Date(found).toISOString()).toBe(new Date(next).toISOString());
  });

  it('finds nothing earlier on a day that comes twice', () => {
    const from = Date.parse('1867-10-18T09:00Z') + 55_872_000;
    expect(parseSpec('* 0 1 10 6', { location: 'America/Juneau' }).next(from)).toBeGreaterThan(from);
  });

  it('every search ends later than it began, within six years, at the right minute and hour', () => {
    const near = fc.tuple(fc.constantFrom(...CHANGES), fc.integer({ min: -60 * DAY, max: 10 * DAY }));
    fc.assert(
      fc.property(anySpec, near, (spec, [[location, change], shift]) => {
        const from = Date.parse(change) + shift;
        const next = parseSpec(spec, { location }).next(from);
        if (next === undefined) return;
        expect(next).toBeGreaterThan(from);
        expect(next).toBeLessThan(from + 6 * YEAR);
        const [minute, hour] = spec.split(' ');
        const shown = clockOf(location, next);
        if (minute !== '*') expect(shown.minute).toBe(Number(minute));
        if (hour !== '*') expect(shown.hour).toBe(Number(hour));
      }),
      { numRuns: 400 },
    );
  });
});

function clockOf(timeZone: string, at: number): { hour: number; minute: number } {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, hourCycle: 'h23', hour: 'numeric', minute: 'numeric' });
  const [hour, minute] = format.format(at).split(':').map(Number) as [number, number];
  return { hour, minute };
}
