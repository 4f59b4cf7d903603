import { InvalidScheduleError } from '../errors.js';
import { CronSchedule, type CronFields } from './cron-schedule.js';
import { EverySchedule } from './every.js';
import { BOUNDS, parseField } from './field.js';
import type { Schedule } from './schedule.js';
import { findZone, type Zone } from './zone.js';

export interface ParseOptions {
  /** IANA name of the zone of a spec without `TZ=`. Default `UTC`. */
  readonly location?: string;
}

/** Named schedules, with their specs. */
const DESCRIPTORS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

const EVERY_PREFIX = '@every ';

/** The beginning of the message about an unknown zone. */
export const BAD_ZONE = 'provided bad location';

/** Go's white space, which differs from `\s` in U+0085 and U+FEFF. */
const SPACE = '[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+';
const SPACES = new RegExp(SPACE);
const OUTER_SPACES = new RegExp(`^${SPACE}|${SPACE}$`, 'g');

/**
 * Reads a spec like the standard parser of robfig/cron v3: five fields, or a descriptor (`@daily`,
 * `@every 90s`), with an optional `TZ=<zone> ` or `CRON_TZ=<zone> ` before it.
 *
 * @throws InvalidScheduleError with the text of robfig/cron
 */
export function parseSpec(spec: string, { location = 'UTC' }: ParseOptions = {}): Schedule {
  if (spec === '') throw new InvalidScheduleError('empty spec string');
  const { zone, rest } = splitZone(spec, location);
  if (!rest.startsWith('@')) return new CronSchedule(parseFields(rest), zone);
  const fixed = Object.hasOwn(DESCRIPTORS, rest) ? DESCRIPTORS[rest] : undefined;
  if (fixed !== undefined) return new CronSchedule(parseFields(fixed), zone);
  if (rest.startsWith(EVERY_PREFIX)) return parseEvery(rest);
  throw new InvalidScheduleError(`unrecognized descriptor: ${rest}`);
}

/** @throws InvalidScheduleError when no zone has this name */
function requireZone(name: string): Zone {
  if (name === '') return requireZone('UTC');
  const zone = findZone(name);
  if (zone) return zone;
  const isPath = name.includes('..') || /^[/\\]/.test(name); // Go opens names as files
  const reason = isPath ? 'time: invalid location name' : `unknown time zone ${name}`;
  throw new InvalidScheduleError(`${BAD_ZONE} ${name}: ${reason}`);
}

/** `TZ=Local` is the zone of the scheduler, as without a prefix. */
function splitZone(spec: string, location: string): { zone: Zone; rest: string } {
  if (!/^(?:CRON_)?TZ=/.test(spec)) return { zone: requireZone(location), rest: spec };
  const end = spec.indexOf(' ');
  if (end < 0) throw new InvalidScheduleError(`no schedule after the zone: ${spec}; write it after a space`);
  const name = spec.slice(spec.indexOf('=') + 1, end);
  const zone = requireZone(name === 'Local' ? location : name);
  return { zone, rest: spec.slice(end).replace(OUTER_SPACES, '') };
}

const words = (text: string): string[] => text.split(SPACES).filter((word) => word !== '');

function parseFields(text: string): CronFields {
  const found = words(text);
  if (found.length !== 5) {
    throw new InvalidScheduleError(`expected exactly 5 fields, found ${found.length}: [${found.join(' ')}]`);
  }
  const [minute, hour, dayOfMonth, month, dayOfWeek] = found as [string, string, string, string, string];
  return {
    minute: parseField(minute, BOUNDS.minute),
    hour: parseField(hour, BOUNDS.hour),
    dayOfMonth: parseField(dayOfMonth, BOUNDS.dayOfMonth),
    month: parseField(month, BOUNDS.month),
    dayOfWeek: parseField(dayOfWeek, BOUNDS.dayOfWeek),
  };
}

function parseEvery(descriptor: string): Schedule {
  try {
    return new EverySchedule(descriptor.slice(EVERY_PREFIX.length));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new InvalidScheduleError(`failed to parse duration ${descriptor}: ${reason}`, { cause: error });
  }
}
