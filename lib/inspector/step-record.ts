import type { StepValue } from '../broker/checkpoints.js';

/** Between what describes a step and its result. */
const END_OF_HEAD = 0x0a;

/**
 * What is known of a stored step, whichever version of a server wrote it: fields and kinds that are not known here are left alone. Times
 * are milliseconds since the epoch.
 */
export interface StepRecord {
  readonly name: string;
  /** Its position among the steps of the handler, from 0 on. */
  readonly n: number;
  readonly kind: string;
  readonly at: number;
  readonly ended?: number | undefined;
  /** When a sleep, a wait or the pause before the next try ends. */
  readonly until?: number | undefined;
  readonly timedOut: boolean;
  /** Whether it failed for good. */
  readonly failed: boolean;
  readonly tries?: number | undefined;
  readonly error?: string | undefined;
  /** The signal that a wait is for. */
  readonly signal?: string | undefined;
  /** The task of a call. */
  readonly child?: { readonly queue: string; readonly id: string } | undefined;
  /** How much of an `each` is done. */
  readonly done?: number | undefined;
  /** How often the steps of the task had been undone before. */
  readonly life: number;
  /** Bytes of its result. */
  readonly resultSize: number;
  /** Its result in JSON, if it was read. */
  readonly result: Buffer | undefined;
}

/** The task has failed for good: why its steps are undone. */
export interface UndoRecord {
  readonly error: string | undefined;
  /** Whether all are undone. */
  readonly over: boolean;
  /** How often they were undone, this time included when that is over. */
  readonly life: number;
  /** How many signals of each name are of the time before. */
  readonly signals: Readonly<Record<string, unknown>>;
}

/** How the task of a call has ended. */
export interface AnswerRecord {
  readonly ok: boolean;
  readonly why: string | undefined;
  readonly resultSize: number;
  /** As the task has stored it, if it was read. */
  readonly result: Buffer | undefined;
}

/** Reads what is stored of a step, or of a part of it; `undefined` when it cannot be read. */
export function readStepRecord(name: string, { bytes, size }: StepValue): StepRecord | undefined {
  const found = split({ bytes, size });
  if (!found) return undefined;
  const { head, number, text, resultSize, result } = found;
  const [queue, id] = [text('queue'), text('id')];
  return {
    name,
    n: number('n') ?? Number.MAX_SAFE_INTEGER,
    kind: text('kind') ?? '',
    at: number('at') ?? 0,
    ended: number('ended'),
    until: number('until'),
    timedOut: head['timedOut'] === true,
    failed: head['failed'] === true,
    tries: number('tries'),
    error: text('error'),
    signal: text('signal'),
    child: queue === undefined || id === undefined ? undefined : { queue, id },
    done: number('done'),
    life: number('life') ?? 0,
    resultSize,
    result,
  };
}

/** `undefined` when it cannot be read. */
export function readUndoRecord(value: StepValue | undefined): UndoRecord | undefined {
  const found = value && split(value);
  if (!found) return undefined;
  const { head, number, text } = found;
  const { signals } = head;
  return {
    error: text('error'),
    over: head['over'] === true,
    life: number('life') ?? 0,
    signals: typeof signals === 'object' && signals !== null ? (signals as Record<string, unknown>) : {},
  };
}

/** `undefined` when it cannot be read. */
export function readAnswerRecord(value: StepValue | undefined): AnswerRecord | undefined {
  const found = value && split(value);
  return found && { ok: found.head['ok'] === true, why: found.text('why'), ...resultOf(found) };
}

const resultOf = ({ resultSize, result }: Pick<AnswerRecord, 'resultSize' | 'result'>) => ({ resultSize, result });

/** A head in JSON, and what is behind it. */
function split({ bytes, size }: StepValue) {
  const end = bytes.indexOf(END_OF_HEAD);
  const head = parseHead(bytes.subarray(0, Math.max(0, end)));
  return (
    head && {
      head,
      number: (key: string): number | undefined => (typeof head[key] === 'number' ? head[key] : undefined),
      text: (key: string): string | undefined => (typeof head[key] === 'string' ? head[key] : undefined),
      resultSize: size - end - 1,
      result: bytes.length === size ? bytes.subarray(end + 1) : undefined,
    }
  );
}

function parseHead(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const head: unknown = JSON.parse(bytes.toString());
    return typeof head === 'object' && head !== null ? (head as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}
