import { InvalidOptionError } from '../errors.js';

/*
 * Go's UnixDate layout, `Mon Jan _2 15:04:05 MST 2006`: whole seconds and the abbreviation of a
 * zone.
 */

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/**
 * For example `Tue Jan 2 03:04:05 UTC 2024`.
 *
 * @param timeZone an IANA name; the abbreviation is Node's. Readers understand an abbreviation only
 * in its own zone and read it as UTC elsewhere, so everything we publish is in UTC, the default
 * @throws InvalidOptionError when the date is invalid
 */
export function formatUnixDate(date: Date, timeZone = 'UTC'): string {
  if (Number.isNaN(date.getTime())) throw new InvalidOptionError('invalid date: use a Date with a valid time');
  if (timeZone !== 'UTC') return formatInZone(date, timeZone);
  const [weekday, month] = [DAYS[date.getUTCDay()], MONTHS[date.getUTCMonth()]];
  const clock = date.toISOString().slice(-13, -5);
  return `${weekday} ${month} ${padDay(date.getUTCDate())} ${clock} UTC ${padYear(date.getUTCFullYear())}`;
}

const padDay = (day: number | string): string => String(day).padStart(2, ' ');
const padYear = (year: number | string): string => String(year).padStart(4, '0');

function formatInZone(date: Date, timeZone: string): string {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    weekday: 'short',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
    year: 'numeric',
  });
  const part = Object.fromEntries(format.formatToParts(date).map(({ type, value }) => [type, value]));
  const clock = `${part.hour}:${part.minute}:${part.second}`;
  return `${part.weekday} ${part.month} ${padDay(part.day!)} ${clock} ${part.timeZoneName} ${padYear(part.year!)}`;
}

const ZONE = 'ChST|MeST|(?:GMT)?[+-](?:[01]?\\d|2[0-3])|WITA|[A-Z]{3,4}T|[A-Z]{3}';
const CLOCK = '(\\d{1,2}):(\\d{2}):(\\d{2})(?:[.,]\\d+)?';
const UNIX_DATE = new RegExp(`^([A-Za-z]{3}) +([A-Za-z]{3}) +(\\d{1,2}) +${CLOCK} +(?:${ZONE}) +(\\d{4})$`);

/** Go ignores the case of names. */
const indexOf = (names: readonly string[], name: string): number =>
  names.findIndex((known) => known.toLowerCase() === name.toLowerCase());

/**
 * Reads a UnixDate like a Go reader in UTC: every zone, even `GMT+2`, counts as UTC. A fraction of
 * a second is dropped. `undefined` if the text is not such a date.
 */
export function parseUnixDate(text: string): Date | undefined {
  const match = UNIX_DATE.exec(text);
  if (!match) return undefined;
  const [, weekday, monthName, dayOfMonth, hours, minutes, seconds, year] = match as unknown as string[];
  const month = indexOf(MONTHS, monthName!);
  const [day, hour, minute, second] = [Number(dayOfMonth), Number(hours), Number(minutes), Number(seconds)];
  if (indexOf(DAYS, weekday!) < 0 || month < 0 || hour > 23 || minute > 59 || second > 59) return undefined;
  const date = new Date(0);
  // Not by the constructor, which reads the years 0 to 99 as 1900 to 1999.
  date.setUTCFullYear(Number(year), month, day);
  if (date.getUTCDate() !== day) return undefined;
  date.setUTCHours(hour, minute, second);
  return date;
}
