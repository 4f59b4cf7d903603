import type { Field } from './field.js';
import type { Schedule } from './schedule.js';
import type { LocalTime, Zone } from './zone.js';

/** The fields of a spec. It fires in the first second of every minute they all allow. */
export interface CronFields {
  readonly minute: Field;
  readonly hour: Field;
  readonly dayOfMonth: Field;
  readonly month: Field;
  readonly dayOfWeek: Field;
}

const MINUTE = 60;
const HOUR = 3600;

/** How far robfig/cron looks ahead. */
const YEARS = 5;

/**
 * Five fields on the clocks of a zone.
 *
 * The search goes from the coarse to the fine, in the steps of robfig/cron: months and days by the calendar, hours and minutes by
 * the time that passes, from the top again when a step reaches the next year, month, day or hour. Where clocks are changed the
 * outcome depends on exactly these steps (an hour that comes twice fires twice, one that is left out does not fire), and Go's
 * schedulers fire beside ours: so the steps are kept, oddities included.
 */
export class CronSchedule implements Schedule {
  private readonly possible: boolean;

  constructor(
    private readonly fields: CronFields,
    private readonly zone: Zone,
  ) {
    this.possible = [fields.minute, fields.hour, fields.month].every(({ allows }) => allows.includes(true));
  }

  next(after: number): number | undefined {
    if (!this.possible) return undefined;
    const search = new Search(this.fields, this.zone, Math.floor(after / 1000) + 1);
    const found = search.run();
    return found === undefined ? undefined : found * 1000;
  }
}

/** One search: the time it stands at, and whether it has left the second it began with. */
class Search {
  private readonly lastYear: number;
  private moved = false;
  /** What the clocks show at `time`. */
  private local: LocalTime;

  constructor(
    private readonly fields: CronFields,
    private readonly zone: Zone,
    private time: number,
  ) {
    this.local = zone.localTime(time);
    this.lastYear = this.local.year + YEARS;
  }

  /** Unix seconds. */
  run(): number | undefined {
    while (this.local.year <= this.lastYear) {
      if (this.findMonth() && this.findDay() && this.findHour() && this.findMinute() && this.findSecond()) {
        return this.time;
      }
    }
    return undefined;
  }

  private goTo(time: number): void {
    this.time = time;
    this.local = this.zone.localTime(time);
  }

  /** The first step goes to the beginning of the unit it counts in. */
  private begin(at: () => number): void {
    if (!this.moved) this.goTo(at());
    this.moved = true;
  }

  /** Each of these answers whether it stayed within the larger unit; otherwise that one has to be looked at again. */
  private findMonth(): boolean {
    while (!this.fields.month.allows[this.local.month]) {
      const { year, month } = this.local;
      this.begin(() => this.zone.at(year, month, 1));
      this.addDate(1, 0);
      if (this.local.month === 1) return false;
    }
    return true;
  }

  private findDay(): boolean {
    while (!this.dayMatches()) {
      const { year, month, day } = this.local;
      this.begin(() => this.zone.at(year, month, day));
      const before = this.time;
      this.addDate(0, 1);
      this.backToMidnight();
      if (this.time <= before && this.passMissingDay(before)) return false;
      if (this.local.day === 1) return false;
    }
    return true;
  }

  /**
   * A zone that moves across the date line leaves out a day (Pacific/Apia 2011-12-30). Go's calendar leads back from it to where
   * the step began, and robfig/cron then never returns. Here the search goes on with the next day that the zone has.
   *
   * @param before where the step began
   * @returns whether that day is in another month
   */
  private passMissingDay(before: number): boolean {
    const { year, month, day } = this.zone.localTime(before);
    for (let days = 2; this.time <= before; days++) this.goTo(this.zone.at(year, month, day + days));
    return this.local.month !== month;
  }

  private dayMatches(): boolean {
    const { dayOfMonth, dayOfWeek } = this.fields;
    const { day, weekday } = this.local;
    const [byMonth, byWeek] = [dayOfMonth.allows[day], dayOfWeek.allows[weekday]];
    return Boolean(dayOfMonth.star || dayOfWeek.star ? byMonth && byWeek : byMonth || byWeek);
  }

  /** Where there is no midnight the calendar leads to an hour beside it. */
  private backToMidnight(): void {
    const { hour } = this.local;
    if (hour !== 0) this.goTo(this.time + (hour > 12 ? 24 - hour : -hour) * HOUR);
  }

  private findHour(): boolean {
    while (!this.fields.hour.allows[this.local.hour]) {
      const { year, month, day, hour } = this.local;
      this.begin(() => this.zone.at(year, month, day, hour));
      this.goTo(this.time + HOUR);
      if (this.local.hour === 0) return false;
    }
    return true;
  }

  private findMinute(): boolean {
    while (!this.fields.minute.allows[this.local.minute]) {
      this.begin(() => Math.floor(this.time / MINUTE) * MINUTE);
      this.goTo(this.time + MINUTE);
      if (this.local.minute === 0) return false;
    }
    return true;
  }

  /** Fewer than 60 steps: only offsets of the time before standard time have seconds, and there the minute may jump. */
  private findSecond(): boolean {
    while (this.local.second !== 0) {
      this.moved = true;
      this.goTo(this.time + 1);
      if (this.local.second === 0) return false;
    }
    return true;
  }

  private addDate(months: number, days: number): void {
    const { year, month, day, hour, minute, second } = this.local;
    this.goTo(this.zone.at(year, month + months, day + days, hour, minute, second));
  }
}
