import type { Field } from './field.js';
import type { Schedule } from './schedule.js';
import type { LocalTime, Zone } from './zone.js';

/** The fields of a spec. It fires in the first second of each minute that all of them allow. */
export interface CronFields {
  readonly minute: Field;
  readonly hour: Field;
  readonly dayOfMonth: Field;
  readonly month: Field;
  readonly dayOfWeek: Field;
}

const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 3600;
const DAY_SECONDS = 86_400;

/** How many years robfig/cron looks ahead. */
const MAX_YEARS_AHEAD = 5;

/**
 * Five fields in a time zone.
 *
 * The search goes from the largest unit to the smallest, in the steps of robfig/cron: months and
 * days by the calendar, hours and minutes by elapsed time, and from the top again when a step
 * reaches the next year, month, day or hour. At a change of clocks the result depends on exactly
 * these steps (an hour that occurs twice fires twice, one that is skipped does not fire). Go's
 * schedulers run beside ours, so the steps are the same, with their oddities.
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
    // On a day that a zone repeats (America/Juneau 1867-10-18), a search may end on the day it began on, before it began.
    for (let from = Math.floor(after / 1000); ; from += DAY_SECONDS) {
      const found = new Search(this.fields, this.zone, from + 1).run();
      if (found === undefined || found * 1000 > after) return found === undefined ? undefined : found * 1000;
    }
  }
}

/** One search: its current time, and whether it has left the second it began in. */
class Search {
  private readonly lastYear: number;
  private moved = false;
  /** The date and time in the zone at `time`. */
  private local: LocalTime;

  constructor(
    private readonly fields: CronFields,
    private readonly zone: Zone,
    private time: number,
  ) {
    this.local = zone.localTime(time);
    this.lastYear = this.local.year + MAX_YEARS_AHEAD;
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

  /** The first step goes to the beginning of its unit. */
  private begin(at: () => number): void {
    if (!this.moved) this.goTo(at());
    this.moved = true;
  }

  /**
   * Each of these returns whether it stayed within the larger unit; otherwise that one is checked
   * again.
   */
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
   * A zone that moves across the date line skips a day (Pacific/Apia 2011-12-30). Go's calendar
   * then goes back to where the step began, and robfig/cron never returns. Here the search goes on
   * with the next day that exists in the zone.
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

  /** On a day without midnight the calendar leads to an hour beside it. */
  private backToMidnight(): void {
    const { hour } = this.local;
    if (hour !== 0) this.goTo(this.time + (hour > 12 ? 24 - hour : -hour) * HOUR_SECONDS);
  }

  private findHour(): boolean {
    while (!this.fields.hour.allows[this.local.hour]) {
      const { year, month, day, hour } = this.local;
      this.begin(() => this.zone.at(year, month, day, hour));
      this.goTo(this.time + HOUR_SECONDS);
      if (this.local.hour === 0) return false;
    }
    return true;
  }

  private findMinute(): boolean {
    while (!this.fields.minute.allows[this.local.minute]) {
      this.begin(() => Math.floor(this.time / MINUTE_SECONDS) * MINUTE_SECONDS);
      this.goTo(this.time + MINUTE_SECONDS);
      if (this.local.minute === 0) return false;
    }
    return true;
  }

  /**
   * Fewer than 60 steps: only offsets before standard time have seconds, where the minute may jump.
   */
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
