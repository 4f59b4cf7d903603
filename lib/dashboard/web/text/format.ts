const whole = new Intl.NumberFormat('en-US');

/** 1234567 → `1,234,567`. */
export const count = (value: number): string => whole.format(Math.round(value));

/** 1234567 → `1.23M`: about four characters, for narrow columns. */
export function compact(value: number): string {
  for (const [unit, size] of [
    ['G', 1e9],
    ['M', 1e6],
    ['k', 1e4],
  ] as const) {
    if (Math.abs(value) >= size) return `${short(value / (unit === 'k' ? 1e3 : size))}${unit}`;
  }
  return count(value);
}

const short = (value: number): string => {
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
};

/** Per second: `0`, `0.4`, `12.5`, `1,234`. */
export function rate(value: number): string {
  if (value === 0) return '0';
  if (value < 0.1) return '<0.1';
  return value < 100 ? value.toFixed(1) : count(value);
}

export { formatBytes as bytes } from '../../../words/bytes.js';

/** Shown for an unknown number, which is never 0. */
export const UNKNOWN = '–';

export const orUnknown = <T>(value: T | null | undefined, show: (value: T) => string): string =>
  value === undefined || value === null ? UNKNOWN : show(value);

export const percent = (part: number, of: number): string => {
  if (of === 0 || part === 0) return '0%';
  const value = (part / of) * 100;
  return value < 0.1 ? '<0.1%' : `${value < 10 ? value.toFixed(1) : value.toFixed(0)}%`;
};

/** How long it was between two times, of which the later is in whole seconds, rounded down: `up to 1 s`, `12 s`. */
export function between(from: number, to: number): string {
  const seconds = Math.floor(to / 1000) - Math.floor(from / 1000);
  return seconds < 1 ? 'up to 1 s' : clockDuration(seconds);
}

const STEPS = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
] as const;

/** Seconds → its two largest units: `340 ms`, `4.2 s`, `3m 20s`, `2d 4h`. */
export function duration(seconds: number): string {
  const value = Math.abs(seconds);
  if (value === 0) return '0 s';
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 10) return `${(Math.floor(value * 10) / 10).toFixed(1)} s`;
  if (value < 60) return `${Math.floor(value)} s`;
  const at = STEPS.findIndex(([, size]) => value >= size);
  const [unit, size] = STEPS[at] as (typeof STEPS)[number];
  const [nextUnit, nextSize] = STEPS[at + 1] as (typeof STEPS)[number];
  const rest = Math.floor((value % size) / nextSize);
  return `${Math.floor(value / size)}${unit}${rest > 0 ? ` ${rest}${nextUnit}` : ''}`;
}

/** The same in whole seconds, so that a running clock does not flicker. */
export const clockDuration = (seconds: number): string => {
  const value = Math.floor(Math.abs(seconds));
  return value < 10 ? `${value} s` : duration(value);
};

/**
 * Milliseconds since 1970, or undefined for the forms in which asynq writes "none": empty, `-`, the
 * zero time.
 */
export function instant(text: string | null | undefined): number | undefined {
  if (!text || text === '-' || text.startsWith('0001-')) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) || time <= 0 ? undefined : time;
}

const two = (value: number): string => `${value}`.padStart(2, '0');

export const timeOfDay = (time: number): string => {
  const date = new Date(time);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};

/** `2026-11-21 11:05:41`, in the browser's time zone. */
export const dateTime = (time: number): string => {
  const date = new Date(time);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${timeOfDay(time)}`;
};

/** `in 3m 20s`, `12 s ago`. */
export function relative(time: number, now: number): string {
  const seconds = (time - now) / 1000;
  if (Math.abs(seconds) < 1) return 'now';
  return seconds > 0 ? `in ${clockDuration(seconds)}` : `${clockDuration(seconds)} ago`;
}

/** `1 task`, `12 tasks`. */
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;
