/** A date and time in a zone. Months and days count from 1, days of the week from Sunday = 0. */
export interface LocalTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly weekday: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

const DAY_SECONDS = 86_400;

/** How many days' offsets are cached: a little more than five years, the longest search. */
const MAX_CACHED_DAYS = 2_500;

/**
 * The offset of a zone from UTC over time, from Node's time zone database. All times are Unix
 * seconds.
 */
export class Zone {
  private readonly format: Intl.DateTimeFormat;
  private readonly offsets = new Map<number, number>();
  private readonly changes = new Map<number, number>();

  /** @throws RangeError when Intl does not know the name */
  constructor(readonly name: string) {
    this.format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  }

  localTime(seconds: number): LocalTime {
    const date = new Date((seconds + this.offsetAt(seconds)) * 1000);
    return {
      year: date.getUTCFullYear(),
      month: date.getUTCMonth() + 1,
      day: date.getUTCDate(),
      weekday: date.getUTCDay(),
      hour: date.getUTCHours(),
      minute: date.getUTCMinutes(),
      second: date.getUTCSeconds(),
    };
  }

  /**
   * The time at which the zone has this date and time; months and days beyond their range carry
   * over. For a date and time that occurs twice, or never, it is that of Go's time.Date: the offset
   * is looked up as if it were UTC, and again at the result.
   */
  at(year: number, month: number, day: number, hour = 0, minute = 0, second = 0): number {
    const asUtc = Date.UTC(year, month - 1, day, hour, minute, second) / 1000;
    const guess = this.offsetAt(asUtc);
    return guess === 0 ? asUtc : asUtc - this.offsetAt(asUtc - guess);
  }

  /**
   * Seconds east of UTC. A day that begins and ends with different offsets has one change, found by
   * bisection.
   */
  private offsetAt(seconds: number): number {
    const day = Math.floor(seconds / DAY_SECONDS);
    const before = this.offsetOfDay(day);
    const after = this.offsetOfDay(day + 1);
    if (before === after) return before;
    return seconds < this.changeOf(day, after) ? before : after;
  }

  private offsetOfDay(day: number): number {
    let offset = this.offsets.get(day);
    if (offset === undefined) {
      if (this.offsets.size >= MAX_CACHED_DAYS) this.offsets.clear();
      this.offsets.set(day, (offset = this.ask(day * DAY_SECONDS)));
    }
    return offset;
  }

  private changeOf(day: number, after: number): number {
    let change = this.changes.get(day);
    if (change !== undefined) return change;
    let [low, high] = [day * DAY_SECONDS, (day + 1) * DAY_SECONDS];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.ask(middle) === after) high = middle;
      else low = middle;
    }
    if (this.changes.size >= MAX_CACHED_DAYS) this.changes.clear();
    this.changes.set(day, (change = high));
    return change;
  }

  private ask(seconds: number): number {
    const [month, day, year, hour, minute, second] = this.format
      .format(seconds * 1000)
      .split(/\D+/)
      .map(Number) as [number, number, number, number, number, number];
    return Date.UTC(year, month - 1, day, hour, minute, second) / 1000 - seconds;
  }
}

/**
 * Names without a slash in the IANA database; Intl knows others (`PST`, `AET`) that Go does not.
 */
const SINGLE =
  'CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran Israel ' +
  'Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey ' +
  'UCT UTC Universal W-SU WET Zulu';
const SINGLE_NAMES = new Set(SINGLE.split(' '));
const IN_AREA =
  /^(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico|Pacific|US)(?:\/[A-Z][\w+-]*)+$/;

const known = new Map<string, Zone>();

/** The zone of an IANA name. As in Go, where it is a file name, the letter case matters. */
export function findZone(name: string): Zone | undefined {
  let zone = known.get(name);
  if (zone || !(SINGLE_NAMES.has(name) || IN_AREA.test(name))) return zone;
  try {
    known.set(name, (zone = new Zone(name)));
  } catch {
    return undefined;
  }
  return zone;
}
