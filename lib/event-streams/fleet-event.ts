import { toDate } from '../clock.js';
import type { StreamedEntry } from '../broker/events.js';
import type { EndedWait, FinishedStep, StepOutcomeKind, StepWork, TaskOutcomeKind, TaskRef } from '../events/events.js';
import {
  type EndedAttempt,
  type TaskOccurrence,
  refTo,
  type TaskEventMap,
  type TaskEventName,
} from '../events/task-events.js';
import type { WaitEnd } from '../task/links.js';
import type { TaskState } from '../wire/states.js';

/** An error as it is stored in Redis. */
export interface FleetError {
  readonly name: string;
  /** At most 1,000 characters. */
  readonly message: string;
  /** Its stable `code`, if it has one. */
  readonly code?: string;
}

/** An event of a task somewhere in the fleet. It has neither payload nor result. */
export interface FleetTaskEvent<E extends TaskEventName = TaskEventName> {
  readonly event: E;
  /** Its id in the stream: where to go on reading after a restart. */
  readonly id: string;
  readonly at: Date;
  /** `host:pid` of the process it happened in. */
  readonly process: string;
  readonly task: TaskRef;
  readonly retried?: number;
  readonly maxRetry?: number;
  /** Milliseconds. */
  readonly waited?: number;
  readonly outcome?: TaskOutcomeKind | StepOutcomeKind;
  /** Milliseconds. */
  readonly duration?: number;
  readonly error?: FleetError;
  readonly retryAt?: Date;
  /** Of `stepFinished`: the name of the step. */
  readonly step?: string;
  /** Of `stepFinished`. */
  readonly kind?: StepWork;
  /** Of `enqueued` and `waitEnded`. */
  readonly state?: TaskState;
  /** Of `waitEnded`. */
  readonly end?: WaitEnd;
  /** Of `aggregated`. */
  readonly group?: string;
  /** Of `aggregated`. */
  readonly size?: number;
}

/** One occurrence, with all its names. */
export type FleetOccurrence = Omit<FleetTaskEvent, 'event'> & { readonly names: readonly TaskEventName[] };

const MAX_MESSAGE_LENGTH = 1_000;

type Details = Partial<
  EndedAttempt &
    Omit<FinishedStep, keyof EndedAttempt> &
    TaskEventMap['aggregated'] &
    TaskEventMap['enqueued'] &
    Omit<EndedWait, 'error'>
>;

export function encodeOccurrence({ names, task, details }: TaskOccurrence, process: string): Buffer {
  const { info, error, retryAt, retried, maxRetry, waited, outcome, duration, group, size, end, state, step, kind } =
    details as Details;
  const attempt = { retried, maxRetry, waited, outcome, duration, step, kind };
  const known = { ...attempt, group, size, end, state: state ?? info?.state };
  const failure = error === undefined ? undefined : describeError(error);
  return Buffer.from(
    JSON.stringify({ names, process, task: refTo(task), ...known, error: failure, retryAt: retryAt?.getTime() }),
  );
}

/** `undefined` for other data: other versions may write to the stream. */
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
    const text = String(message).slice(0, MAX_MESSAGE_LENGTH);
    return { name: String(name), message: text, ...(typeof code === 'string' ? { code } : {}) };
  } catch {
    return { name: 'Error', message: 'an error that cannot be shown' };
  }
}

const asError = (thrown: unknown) => ({ name: 'Error', message: String(thrown), code: undefined });
