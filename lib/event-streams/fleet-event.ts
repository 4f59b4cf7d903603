import { toDate } from '../clock.js';
import type { StreamedEntry } from '../broker/events.js';
import type { TaskOutcomeKind, TaskRef } from '../events/events.js';
import {
  type EndedAttempt,
  type TaskOccurrence,
  refTo,
  type TaskEventMap,
  type TaskEventName,
} from '../events/task-events.js';
import type { TaskState } from '../wire/states.js';

/** What is left of an error on its way through Redis. */
export interface FleetError {
  readonly name: string;
  /** At most 1,000 characters. */
  readonly message: string;
  /** Its stable `code`, if it has one. */
  readonly code?: string;
}

/** What happened to a task somewhere in the fleet. Payloads and results are not among it. */
export interface FleetTaskEvent<E extends TaskEventName = TaskEventName> {
  readonly event: E;
  /** Its place in the stream: where to go on reading after a restart. */
  readonly id: string;
  readonly at: Date;
  /** `host:pid` of the process that told it. */
  readonly process: string;
  readonly task: TaskRef;
  readonly retried?: number;
  readonly maxRetry?: number;
  /** Milliseconds. */
  readonly waited?: number;
  readonly outcome?: TaskOutcomeKind;
  /** Milliseconds. */
  readonly duration?: number;
  readonly error?: FleetError;
  readonly retryAt?: Date;
  /** Of `enqueued`. */
  readonly state?: TaskState;
  /** Of `aggregated`. */
  readonly group?: string;
  /** Of `aggregated`. */
  readonly size?: number;
}

/** One thing that happened, by all its names. */
export type FleetOccurrence = Omit<FleetTaskEvent, 'event'> & { readonly names: readonly TaskEventName[] };

const LONGEST_MESSAGE = 1_000;

type Details = Partial<EndedAttempt & TaskEventMap['aggregated'] & TaskEventMap['enqueued']>;

export function encodeOccurrence({ names, task, details }: TaskOccurrence, process: string): Buffer {
  const { info, error, retryAt, retried, maxRetry, waited, outcome, duration, group, size } = details as Details;
  const known = { retried, maxRetry, waited, outcome, duration, group, size, state: info?.state };
  const failure = error === undefined ? undefined : describeError(error);
  return Buffer.from(
    JSON.stringify({ names, process, task: refTo(task), ...known, error: failure, retryAt: retryAt?.getTime() }),
  );
}

/** `undefined` for what is none: the stream may be written by other versions. */
export function decodeOccurrence({ id, data }: StreamedEntry): FleetOccurrence | undefined {
  try {
    const { retryAt, ...rest } = JSON.parse(data.toString()) as Omit<FleetOccurrence, 'retryAt'> & { retryAt?: number };
    if (!Array.isArray(rest.names) || typeof rest.task?.type !== 'string') return undefined;
    const at = toDate(Number(id.split('-')[0]));
    return { ...rest, id, at, ...(retryAt === undefined ? {} : { retryAt: toDate(retryAt) }) };
  } catch {
    return undefined;
  }
}

function describeError(error: unknown): FleetError {
  try {
    const { name, message, code } = error instanceof Error ? (error as Error & { code?: unknown }) : asError(error);
    const text = String(message).slice(0, LONGEST_MESSAGE);
    return { name: String(name), message: text, ...(typeof code === 'string' ? { code } : {}) };
  } catch {
    return { name: 'Error', message: 'an error that cannot be shown' };
  }
}

const asError = (thrown: unknown) => ({ name: 'Error', message: String(thrown), code: undefined });
