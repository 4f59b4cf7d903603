import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { parseSpec } from '../../lib/cron/parse.js';
import { describeWithGo } from '../support/go.js';
import { useGo } from './fixture.js';

vi.setConfig({ testTimeout: 120_000 });

/** Whole hours, half hours, two hours; at midnight, at noon in UTC; a day left out, a change of standard time. */
const ZONES = [
  'UTC',
  'America/New_York',
  'America/Sao_Paulo',
  'America/Havana',
  'America/Santiago',
  'America/St_Johns',
  'Africa/Cairo',
  'Antarctica/Troll',
  'Asia/Amman',
  'Asia/Beirut',
  'Asia/Kathmandu',
  'Asia/Tehran',
  'Atlantic/Azores',
  'Australia/Lord_Howe',
  'Europe/Berlin',
  'Europe/Dublin',
  'Pacific/Apia',
  'Pacific/Chatham',
];

/** These the databases of Go and Node agree on before 1970, too, when there were offsets with seconds. */
const OLD_ZONES = ['America/New_York', 'Europe/London', 'Europe/Paris', 'Asia/Tokyo'];

const FIRINGS = 50;
/** The same specs in every run: a database that is updated on one side only must not fail somebody's build. */
const SEED = 20_240_310;

interface Case {
  spec: string;
  location: string;
  from: number;
}

/** Days around which clocks were changed somewhere: random instants would seldom meet one. */
const CHANGES = [
  '2024-03-10T06:00Z',
  '2024-11-03T05:00Z',
  '2018-11-03T22:00Z',
  '2018-02-17T22:00Z',
  '2024-04-06T14:00Z',
  '2023-09-30T14:00Z',
  '2024-03-31T00:00Z',
  '2023-10-28T22:00Z',
  '2011-12-29T09:00Z',
  '2021-03-21T19:00Z',
].map((text) => Date.parse(text));

const range = (least: number, most: number): fc.Arbitrary<string> =>
  fc.tuple(fc.integer({ min: least, max: most }), fc.integer({ min: least, max: most })).map(([a, b]) => {
    return a === b ? String(a) : `${Math.min(a, b)}-${Math.max(a, b)}`;
  });

function field(least: number, most: number, names: readonly string[] = []): fc.Arbitrary<string> {
  const value = fc.integer({ min: least, max: most }).map(String);
  const named = names.length > 0 ? fc.constantFrom(...names) : value;
  const base = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom('*', '*', '*', '?') },
    { weight: 4, arbitrary: value },
    { weight: 1, arbitrary: named },
    { weight: 2, arbitrary: range(least, most) },
  );
  const step = fc.integer({ min: 1, max: most }).map((count) => `/${count}`);
  const part = fc.tuple(base, fc.oneof({ weight: 3, arbitrary: fc.constant('') }, { weight: 1, arbitrary: step }));
  return fc
    .array(
      part.map(([span, every]) => span + every),
      { minLength: 1, maxLength: 3 },
    )
    .map((parts) => parts.join(','));
}

const MONTHS = ['jan', 'FEB', 'Mar', 'nov'];
const DAYS = ['sun', 'MON', 'Sat'];
const fiveFields = fc
  .tuple(field(0, 59), field(0, 23), field(1, 31), field(1, 12, MONTHS), field(0, 6, DAYS))
  .map((fields) => fields.join(' '));

/** Hours and minutes around which clocks are changed, each day. */
const atNight = fc
  .tuple(fc.constantFrom('0', '30', '*/15', '59', '*'), fc.constantFrom('0', '1', '2', '3', '23', '0-3', '*/2', '1,2'))
  .map(([minute, hour]) => `${minute} ${hour} * * *`);
const atMonthsEnd = fc.constantFrom('0 0 1 * *', '30 0 1 */2 *', '0 0 31 * *', '0 0 30 12 *', '15 0-4 30,31 * *');
const descriptor = fc.constantFrom('@yearly', '@monthly', '@weekly', '@daily', '@hourly', '@every 90s', '@every 36h');

const spec = fc.oneof(
  { weight: 5, arbitrary: fiveFields },
  { weight: 5, arbitrary: atNight },
  { weight: 1, arbitrary: atMonthsEnd },
  { weight: 1, arbitrary: descriptor },
);
const prefixed = fc
  .tuple(fc.constantFrom('TZ', 'CRON_TZ'), fc.constantFrom(...ZONES), spec)
  .map(([name, zone, rest]) => `${name}=${zone} ${rest}`);
const anySpec = fc.oneof({ weight: 5, arbitrary: spec }, { weight: 1, arbitrary: prefixed });

const between = (from: string, to: string): fc.Arbitrary<number> =>
  fc.integer({ min: Date.parse(from) / 1000, max: Date.parse(to) / 1000 }).map((seconds) => seconds * 1000);
const nearChange = fc
  .tuple(fc.constantFrom(...CHANGES), fc.integer({ min: -20_000, max: 20_000 }))
  .map(([at, seconds]) => at + seconds * 1000);

const recent: fc.Arbitrary<Case> = fc.record({
  spec: anySpec,
  location: fc.constantFrom(...ZONES),
  from: fc.oneof(nearChange, between('1971-01-01T00:00Z', '2019-01-01T00:00Z')),
});
const historical: fc.Arbitrary<Case> = fc.record({
  spec,
  location: fc.constantFrom(...OLD_ZONES),
  from: between('1880-01-01T00:00Z', '1965-01-01T00:00Z'),
});

/** Anything that looks a bit like a spec: which ones are refused, and with what text. */
const nonsense = fc
  .array(
    fc.constantFrom(
      '*',
      '?',
      '-',
      '/',
      ',',
      '0',
      '1',
      '7',
      '31',
      '60',
      '+5',
      'L',
      'W',
      'mon',
      'JAN',
      '5-1',
      '*/0',
      'é',
    ),
    { maxLength: 5 },
  )
  .map((parts) => parts.join(''));
const broken = fc
  .tuple(
    fc.constantFrom(
      '',
      '',
      '',
      ' ',
      '@',
      '@every ',
      '@every 1h',
      '@daily',
      'TZ=UTC ',
      'TZ=Nowhere/X ',
      'TZ= ',
      'TZ=PST ',
    ),
    fc.array(fc.oneof({ weight: 2, arbitrary: fc.constant('*') }, { weight: 1, arbitrary: nonsense }), {
      maxLength: 6,
    }),
    fc.constantFrom(' ', ' ', '\t', '\u00a0', '  '),
  )
  .map(([start, fields, separator]) => ({ spec: start + fields.join(separator), location: 'UTC', from: 0 }));

function ours({ spec, location, from }: Case): { error: string; next: number[] | null } {
  try {
    const schedule = parseSpec(spec, { location });
    const next: number[] = [];
    for (let at: number | undefined = from; next.length < FIRINGS;) {
      at = schedule.next(at);
      if (at === undefined) break;
      next.push(at);
    }
    return { error: '', next };
  } catch (error) {
    return { error: (error as Error).message, next: null };
  }
}

describeWithGo('the dialect of specs, beside robfig/cron', () => {
  const peer = useGo();

  async function compare(arbitrary: fc.Arbitrary<Case>, count: number): Promise<number> {
    const cases = fc.sample(arbitrary, { numRuns: count, seed: SEED });
    const theirs = await peer.go.cron(cases.map((one) => ({ ...one, count: FIRINGS })));
    const different = cases.flatMap((one, index) => {
      const [a, b] = [ours(one), theirs[index]!];
      return JSON.stringify(a) === JSON.stringify(b) ? [] : [{ ...one, ours: a, go: b }];
    });
    expect(different.slice(0, 3)).toEqual([]);
    return theirs.filter(({ error }) => error !== '').length;
  }

  it('fires at the same times, 50 times for each of 600 specs', async () => {
    expect(await compare(recent, 600)).toBe(0);
  });

  it('fires at the same times before there was standard time', async () => {
    expect(await compare(historical, 300)).toBe(0);
  });

  it('refuses the same specs, in the same words', async () => {
    expect(await compare(broken, 3_000)).toBeGreaterThan(1_000);
  });
});
