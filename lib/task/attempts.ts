import { toDate } from '../clock.js';

/** One attempt of a task that has ended: of those that failed, and of a success after them. */
export interface AttemptInfo {
  /** From 1 on; numbers that are left out are of attempts of which nothing is known. */
  readonly number: number;
  /** `failed` also when it was cancelled or ran out of time; `crashed`: its server has died. */
  readonly outcome: 'failed' | 'crashed' | 'completed';
  /** When its server took the task; `undefined` after a crash. */
  readonly startedAt: Date | undefined;
  /** When it ended; after a crash the last sign of life of the server. */
  readonly endedAt: Date;
  /** Milliseconds; `undefined` after a crash. */
  readonly duration: number | undefined;
  /**
   * `<host>:<pid>:<id>` of the server, as an inspector lists it; after a crash `<host>:<pid>`. `undefined` when it is not known which one has
   * died.
   */
  readonly server: string | undefined;
  /** Its text, up to 1,000 characters; empty for a success. */
  readonly error: string;
  /** As Node writes it, with those of its causes, up to 2,000 characters; `undefined` when there is none. */
  readonly stack: string | undefined;
}

/** What is known of the attempts of a task that have ended. */
export interface AttemptList {
  /** Oldest first. */
  readonly attempts: readonly AttemptInfo[];
  /**
   * How many attempts there were. Of those that are not in the list nothing is known any more: older ones are dropped, and servers of Go, or
   * without `attemptHistory`, note none.
   */
  readonly total: number;
}

/** What is stored of an attempt. */
export interface AttemptEntry extends Omit<AttemptInfo, 'number' | 'startedAt' | 'endedAt'> {
  /** Milliseconds since the epoch; so is `endedAt`. */
  readonly startedAt: number | undefined;
  readonly endedAt: number;
  /** How many retries the task had used before. */
  readonly retried: number;
  /** Whether it has used one more. */
  readonly counts: boolean;
}

/** The nth entry of a task, from 0 on, also if earlier ones are gone. */
export interface StoredAttempt {
  readonly n: number;
  readonly text: string;
}

/** JSON: `[outcome, end, duration or null, retried, whether it counts, server, error, stack]`; the last ones are left out when they are empty. */
export function encodeAttempt(entry: AttemptEntry): string {
  const { outcome, endedAt, duration, retried, counts, server = '', error, stack = '' } = entry;
  const fields = [outcome, Math.floor(endedAt), round(duration), retried, counts ? 1 : 0, server, error, stack];
  while (fields.at(-1) === '') fields.pop();
  return JSON.stringify(fields);
}

const round = (duration: number | undefined): number | null => (duration === undefined ? null : Math.round(duration));

const OUTCOMES: ReadonlySet<unknown> = new Set<AttemptInfo['outcome']>(['failed', 'crashed', 'completed']);

/** `undefined` for what is no entry: the store may be written by others. */
export function decodeAttempt(text: string): AttemptEntry | undefined {
  const [outcome, endedAt, duration, retried, counts, server = '', error = '', stack = ''] = readArray(text);
  if (!OUTCOMES.has(outcome) || !isCount(endedAt) || !isCount(retried)) return undefined;
  if (typeof server !== 'string' || typeof error !== 'string' || typeof stack !== 'string') return undefined;
  const took = isCount(duration) ? duration : undefined;
  return {
    outcome: outcome as AttemptInfo['outcome'],
    endedAt,
    duration: took,
    startedAt: took === undefined ? undefined : endedAt - took,
    retried,
    counts: counts === 1,
    server: server || undefined,
    error,
    stack: stack || undefined,
  };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function readArray(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

/**
 * Numbers the attempts. Where a task had used more retries than its entries tell, attempts between them are not known.
 *
 * @param retried how many retries the task has used by now
 */
export function readAttempts(stored: readonly StoredAttempt[], retried: number): AttemptList {
  const attempts: AttemptInfo[] = [];
  let [total, used] = [0, 0];
  for (const { n, text } of stored) {
    const entry = decodeAttempt(text);
    if (!entry) continue;
    const { retried: before, counts, startedAt, endedAt, outcome, duration, server, error, stack } = entry;
    total = Math.max(total + Math.max(0, before - used), n) + 1;
    used = counts ? before + 1 : before;
    const times = { startedAt: startedAt === undefined ? undefined : toDate(startedAt), endedAt: toDate(endedAt) };
    attempts.push({ number: total, outcome, ...times, duration, server, error, stack });
  }
  return { attempts, total: total + Math.max(0, retried - used) };
}
