/** A date and time on the clocks of a zone. Months and days count from 1, days of the week from Sunday = 0. */
export interface LocalTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly weekday: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

const DAY = 86_400;

/** Days whose offsets are kept: five years and a bit, which is how far a search looks. */
const MOST_DAYS = 2_500;

/** How the clocks of one place stand against UTC, in the database that Node brings along. All times are Unix seconds. */
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
   * The moment the clocks show this; months and days beyond their range carry over. Of a time that comes twice, or not at all, it
   * is the one Go's time.Date picks: the offset is looked up as if the text were UTC, and again with what that gives.
   */
  at(year: number, month: number, day: number, hour = 0, minute = 0, second = 0): number {
    const asUtc = Date.UTC(year, month - 1, day, hour, minute, second) / 1000;
    const guess = this.offsetAt(asUtc);
    return guess === 0 ? asUtc : asUtc - this.offsetAt(asUtc - guess);
  }

  /** Seconds east of UTC. Within a day that begins and ends with different offsets there is one change, found by halving. */
  private offsetAt(seconds: number): number {
    const day = Math.floor(seconds / DAY);
    const before = this.offsetOfDay(day);
    const after = this.offsetOfDay(day + 1);
    if (before === after) return before;
    return seconds < this.changeOf(day, after) ? before : after;
  }

  private offsetOfDay(day: number): number {
    let offset = this.offsets.get(day);
    if (offset === undefined) {
      if (this.offsets.size >= MOST_DAYS) this.offsets.clear();
      this.offsets.set(day, (offset = this.ask(day * DAY)));
    }
    return offset;
  }

  private changeOf(day: number, after: number): number {
    let change = this.changes.get(day);
    if (change !== undefined) return change;
    let [low, high] = [day * DAY, (day + 1) * DAY];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.ask(middle) === after) high = middle;
      else low = middle;
    }
    if (this.changes.size >= MOST_DAYS) this.changes.clear();
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

/** Names without a slash in the IANA database; Intl knows further ones (`PST`, `AET`) that Go does not. */
const SINGLE =
  'CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran Israel ' +
  'Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey ' +
  'UCT UTC Universal W-SU WET Zulu';
const SINGLE_NAMES = new Set(SINGLE.split(' '));
const IN_AREA =
  /^(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico|Pacific|US)(?:\/[A-Z][\w+-]*)+$/;

const known = new Map<string, Zone>();

/** The zone of an IANA name; in the letter case of the database, as in Go, where it is the name of a file. */
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
