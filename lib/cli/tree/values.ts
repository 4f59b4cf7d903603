import { InvalidArgumentError, Option } from 'commander';
import { CANCEL_OUTCOMES, type CancelOutcome } from '../../broker/cancellation.js';
import { millisecondsOf, parseGoDuration } from '../../wire/go-duration.js';
import { TASK_STATES, type TaskState } from '../../wire/states.js';

/* Options of several commands, and how their values are read. An invalid value ends the command with status 2. */

export const queueOption = (help = 'name of the queue'): Option =>
  new Option('-q, --queue <name>', help).makeOptionMandatory();

export const idOption = (): Option => new Option('-i, --id <id>', 'id of the task').makeOptionMandatory();

export const jsonOption = (): Option => new Option('--json', 'print JSON');

export const yesOption = (): Option => new Option('-y, --yes', 'do not ask');

export const groupOption = (): Option => new Option('-g, --group <name>', 'the group; needed for aggregating tasks');

export const keyOption = (): Option => new Option('--key <key>', 'only pending tasks of this key of a fair queue');

export const stateOption = (states: readonly TaskState[] = TASK_STATES): Option =>
  new Option('-s, --state <state>', 'state of the tasks').choices(states).makeOptionMandatory();

export const pageOptions = (things = 'tasks'): Option[] => [
  new Option('--page <number>', 'number of the page, from 1 (default: 1)').argParser(positive),
  new Option('--size <number>', `${things} per page, up to 1000`).argParser(positive).default(30),
];

/** How running tasks are cancelled. */
export interface CancelFlagValues {
  readonly reason?: string;
  readonly outcome?: CancelOutcome;
}

export const cancelOptions = (): Option[] => [
  new Option('--reason <text>', 'reason for the handler, stored as the last error of the task'),
  new Option('--outcome <outcome>', 'what happens to the tasks (default: "retry")').choices(CANCEL_OUTCOMES),
];

/** When a task runs: one of the two, or none. */
export interface ProcessFlags {
  readonly process_at?: Date;
  /** Milliseconds. */
  readonly process_in?: number;
}

export const processOptions = (): Option[] => [
  new Option('--process_at <time>', 'earliest start').argParser(time).conflicts('process_in'),
  new Option('--process_in <duration>', 'time to wait before the start').argParser(duration),
];

export function positive(text: string): number {
  if (/^\d{1,9}$/.test(text) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of at least 1.');
}

export function count(text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of at least 0.');
}

/** Milliseconds of a duration in Go's notation. */
export function duration(text: string): number {
  try {
    return millisecondsOf(parseGoDuration(text));
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}; write 90s, 1h30m or 500ms.`);
  }
}

const RFC3339 = /^(\d{4}-\d\d-\d\d)[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

export function time(text: string): Date {
  const [, day] = RFC3339.exec(text) ?? [];
  const date = new Date(text.toUpperCase());
  const isDay = day !== undefined && new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day);
  if (isDay && !Number.isNaN(date.getTime())) return date;
  throw new InvalidArgumentError(
    'It must be a time in RFC 3339, as 2026-11-21T09:00:00Z or 2026-11-21T09:00:00+01:00.',
  );
}
