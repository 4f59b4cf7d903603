/** What is stored of a step of a handler. Times are milliseconds since the epoch. */
export interface Checkpoint {
  /** Its position among the steps of the handler, from 0 on. Of a compensation: that of the step that it undoes. */
  readonly n: number;
  readonly kind: 'run' | 'sleep' | 'wait' | 'call' | 'each' | 'undo';
  /** When it began. */
  readonly at: number;
  /** When the work was done, or has failed for good. */
  readonly ended?: number | undefined;
  /** When the sleep, the wait for a signal, or the wait for the next try ends; when a called task is asked for that has not answered. */
  readonly until?: number | undefined;
  readonly timedOut?: true | undefined;
  /** The name of the signal that is waited for. */
  readonly signal?: string | undefined;
  /** How often the work has failed, where the step has retries of its own. */
  readonly tries?: number | undefined;
  /** After which failure of the task, in Unix seconds, a step that had failed for good was tried again. */
  readonly tried?: number | undefined;
  /** Why it has failed last. */
  readonly error?: string | undefined;
  /** It has failed for good. */
  readonly failed?: true | undefined;
  /** It has a compensation. */
  readonly undo?: true | undefined;
  /** The queue and the id of a called task. */
  readonly queue?: string | undefined;
  readonly id?: string | undefined;
  /** How many rows are done, and the cursor of the last of them. */
  readonly done?: number | undefined;
  readonly cursor?: unknown;
  /** The version of the handler that has begun the task, if it is not 1. */
  readonly v?: number | undefined;
  /** How often the steps of the task were undone before it. */
  readonly life?: number | undefined;
  /** JSON; empty: undefined. */
  readonly result?: string | undefined;
}

/** The task has failed for good, and its steps are undone. */
export interface UndoRecord {
  /** Why it has failed. */
  readonly error: string;
  /** What becomes of the task then. */
  readonly outcome: 'archive' | 'revoke';
  readonly at: number;
  /** They are undone. When the task is run again by hand, it begins again. */
  readonly over?: true | undefined;
  /** How often that was so before. */
  readonly life?: number | undefined;
  /** How many signals there were, by name, when the life before was over, or this one is: they are not for the next. */
  readonly signals?: Readonly<Record<string, number>> | undefined;
}

/** Where a step has its place that has failed, and of which nothing else is stored: see StepRecords.keepPlace. */
export interface Place {
  readonly n: number;
  readonly life: number;
}

const END_OF_HEAD = '\n';

/** JSON of all but the result, then the result: so that no result is JSON within JSON. */
export function encodeCheckpoint({ result, ...head }: Checkpoint): Buffer {
  return Buffer.from(`${JSON.stringify(head)}${END_OF_HEAD}${result ?? ''}`);
}

export function decodeCheckpoint(bytes: Buffer): Checkpoint {
  const { head, rest } = split(bytes);
  return { ...(head as Omit<Checkpoint, 'result'>), result: rest };
}

export const encodeUndoRecord = (record: UndoRecord): Buffer => encodeHead(record);

export const decodeUndoRecord = (bytes: Buffer): UndoRecord => split(bytes).head as UndoRecord;

export const encodePlace = (place: Place): Buffer => encodeHead(place);

export const decodePlace = (bytes: Buffer): Place => split(bytes).head as Place;

/** How a called task has ended. */
export type Answer =
  | { readonly ok: true; readonly result: Buffer; readonly why?: undefined }
  | { readonly ok: false; readonly why: string; readonly result?: undefined };

/** @param bytes as the store keeps them: JSON of `{ ok, why }`, a line feed, and the result */
export function decodeAnswer(bytes: Buffer): Answer {
  const end = bytes.indexOf(END_OF_HEAD);
  const { ok, why = '' } = JSON.parse(bytes.toString('utf8', 0, end)) as { ok: boolean; why?: string };
  return ok ? { ok, result: bytes.subarray(end + 1) } : { ok, why };
}

const encodeHead = (head: UndoRecord | Place): Buffer => Buffer.from(`${JSON.stringify(head)}${END_OF_HEAD}`);

function split(bytes: Buffer): { head: unknown; rest: string } {
  const text = bytes.toString();
  const end = text.indexOf(END_OF_HEAD);
  return { head: JSON.parse(text.slice(0, end)), rest: text.slice(end + 1) };
}
