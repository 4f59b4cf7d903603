import { parseDuration, type Duration } from '../duration.js';
import { InvalidTaskError } from '../errors.js';
import { describe, rejectUnknownKeys, requireInteger, requireObject } from '../validation.js';

/** What must have a task before its enqueue is done. */
export interface AcknowledgeOptions {
  /** So many replicas have it in their memory (`WAIT`). Default 1; 0 with `disk`. */
  replicas?: number;
  /**
   * The append-only file of the master has it on disk, and those of the replicas, too (`WAITAOF`). Needs Redis 7.2 with
   * `appendonly yes`; else the call is refused before anything is written. Default false.
   */
  disk?: boolean;
  /** How long to wait for that, up to 5 s. Then the call rejects with AcknowledgeTimeoutError; the task is stored. Default 2 s. */
  timeout?: Duration;
}

/** An option of a call, a definition and a client. */
export interface Acknowledged {
  /**
   * The call resolves only when replicas, or append-only files, have the task; `false`: as soon as Redis has it. That of the call counts,
   * else that of the definition, else that of the client. Default false.
   */
  acknowledge?: AcknowledgeOptions | false;
}

/** After all checks. */
export interface Acknowledge {
  readonly replicas: number;
  readonly disk: boolean;
  /** Whole milliseconds. */
  readonly timeout: number;
}

const KNOWN: readonly (keyof AcknowledgeOptions)[] = ['replicas', 'disk', 'timeout'];
const DEFAULT_TIMEOUT_MS = 2_000;
/** The driver takes a connection for dead that does not reply for 10 s. */
const LONGEST_TIMEOUT_MS = 5_000;

/** @returns `false`: wait for nothing. @throws InvalidTaskError */
export function readAcknowledge(given: unknown, name: string): Acknowledge | false {
  if (given === false) return false;
  const options = requireObject(given, `${name} (options, or false)`, InvalidTaskError) as AcknowledgeOptions;
  rejectUnknownKeys(options, KNOWN, `option of ${name}:`, InvalidTaskError);
  const { disk = false, timeout = DEFAULT_TIMEOUT_MS } = options;
  if (typeof disk !== 'boolean')
    throw new InvalidTaskError(`${name}: disk must be true or false, not ${describe(disk)}`);
  const { replicas = disk ? 0 : 1 } = options;
  requireInteger(replicas, `${name}: replicas`, InvalidTaskError, { least: disk ? 0 : 1, most: 1_000 });
  const milliseconds = Math.ceil(parseDuration(timeout, `${name}: timeout`, InvalidTaskError));
  if (milliseconds >= 1 && milliseconds <= LONGEST_TIMEOUT_MS) return { replicas, disk, timeout: milliseconds };
  throw new InvalidTaskError(`${name}: timeout must be more than zero and at most 5s, not ${describe(timeout)}`);
}
