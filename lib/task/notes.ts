import { toDate } from '../clock.js';

/** How far a handler has said it is. */
export interface TaskProgress {
  /** From 0 to 1. */
  readonly fraction: number;
  readonly text?: string;
  readonly at: Date;
}

/** A line that a handler has logged. */
export interface TaskLogLine {
  readonly at: Date;
  readonly text: string;
}

/** What handlers have logged. */
export interface TaskLog {
  readonly lines: readonly TaskLogLine[];
  /** Older lines that are not kept any more. */
  readonly dropped: number;
}

/** What handlers have said, as it is stored: JSON. */
export interface SaidNotes {
  readonly progress: string | undefined;
  /** The texts of the pieces that are there. */
  readonly log: readonly string[];
  /** Lines that are not there any more. */
  readonly logDropped: number;
  /** Of the last pieces, with a bounded number of bytes. */
  readonly chunks: readonly string[];
}

/** What a list has of an active task. */
export const onlyProgress = (progress: string): SaidNotes => ({ progress, log: [], logDropped: 0, chunks: [] });

/** `undefined` when there is no line, and none was dropped. */
export function readLog({ log, logDropped }: SaidNotes): TaskLog | undefined {
  if (log.length === 0 && logDropped === 0) return undefined;
  return { lines: log.flatMap(decodeLines), dropped: logDropped };
}

/** JSON of what is stored: `[milliseconds, fraction, text?]`. */
export function encodeProgress({ at, fraction, text }: TaskProgress): string {
  return JSON.stringify(text === undefined ? [at.getTime(), fraction] : [at.getTime(), fraction, text]);
}

/** `undefined` for what is not that. */
export function decodeProgress(stored: string | undefined): TaskProgress | undefined {
  const [at, fraction, text] = readArray(stored);
  if (typeof at !== 'number' || typeof fraction !== 'number') return undefined;
  return { fraction, ...(typeof text === 'string' && { text }), at: toDate(at) };
}

/** JSON of one line: `[milliseconds, text]`. */
export const encodeLine = (at: number, text: string): string => JSON.stringify([at, text]);

/** The lines of a piece; what is no line is left out. */
export const decodeLines = (piece: string | undefined): TaskLogLine[] =>
  readArray(piece).flatMap((entry) => {
    const [at, text]: readonly unknown[] = Array.isArray(entry) ? entry : [];
    return typeof at === 'number' && typeof text === 'string' ? [{ at: toDate(at), text }] : [];
  });

/** The chunks of a piece. */
export const decodeChunks = (piece: string | undefined): readonly unknown[] => readArray(piece);

/** Empty for what is no JSON array: the store may be written by others. */
function readArray(text: string | undefined): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
