import { randomFillSync } from 'node:crypto';
import { toDate } from '../clock.js';

/*
 * The id that a task gets when the call names none: a UUID of version 7 (RFC 9562). Its first 48 bits are the time of the call, so that it is known
 * without a byte more when the task was enqueued.
 */

/** Three digits at once: an id costs less than one of `crypto.randomUUID`. */
const DIGITS = Array.from({ length: 4096 }, (_, number) => number.toString(16).padStart(3, '0'));
/** What the digit with the variant may be. */
const VARIANTS = ['8', '9', 'a', 'b'] as const;
/** Random numbers of 16 bits that one id takes. */
const NUMBERS = 6;

const numbers = new Uint16Array(1024 * NUMBERS);
let used = numbers.length;
let lastTime = -1;
let lastPrefix = '';

/** @param now milliseconds since the epoch */
export function newTaskId(now: number): string {
  const time = Math.floor(now);
  if (time !== lastTime) [lastTime, lastPrefix] = [time, prefixOf(time)];
  if (used === numbers.length) {
    randomFillSync(numbers);
    used = 0;
  }
  const at = used;
  used += NUMBERS;
  const last = numbers[at + 5]!;
  return (
    lastPrefix +
    digits(numbers[at]!) +
    '-' +
    VARIANTS[last & 3] +
    digits(numbers[at + 1]!) +
    '-' +
    digits(numbers[at + 2]!) +
    digits(numbers[at + 3]!) +
    digits(numbers[at + 4]!) +
    digits(last >> 4)
  );
}

const digits = (number: number): string => DIGITS[number & 4095]!;

/** The time and the version. A clock that is beyond 48 bits, or before 1970, gives the nearest time. */
function prefixOf(time: number): string {
  const text = Math.min(Math.max(time, 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0');
  return `${text.slice(0, 8)}-${text.slice(8)}-7`;
}

const VERSION_7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** From September 2001 to December 2099: what else is in the first bits is no time of an enqueue. */
const EARLIEST_MS = 1e12;
const LATEST_MS = 4_102_444_800_000;

/** When a task with this id was enqueued, in milliseconds since the epoch; `undefined` when the id does not say it, as those of Go clients. */
export function timeOfTaskId(id: string): number | undefined {
  const [, high, low] = VERSION_7.exec(id) ?? [];
  if (high === undefined || low === undefined) return undefined;
  const time = parseInt(high + low, 16);
  return time >= EARLIEST_MS && time < LATEST_MS ? time : undefined;
}

/** The same as a `Date`. */
export function enqueuedAtOf(id: string): Date | undefined {
  const time = timeOfTaskId(id);
  return time === undefined ? undefined : toDate(time);
}
