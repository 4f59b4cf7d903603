import { REDACTED } from '../../redaction/rules.js';
import type { TaskInfo } from '../../task/info.js';
import type { Presenter, Subject } from '../payload/presenter.js';
import { ApiError, BadRequest } from './api-error.js';

/*
 * Redacted tasks are copied on the server, also for senders who may not see them. Names, types and
 * rules decide whether a copy is refused, never hidden values, which could be guessed.
 */

type Headers = Readonly<Record<string, string>>;

/** What a copy of a task changes. */
export interface TaskCopy {
  readonly type: string;
  readonly queue: string;
  readonly headers: Headers;
  /** Names of headers taken from the task. */
  readonly ownHeaders: readonly string[];
  /** Whether it keeps the payload of the task. */
  readonly samePayload: boolean;
}

/**
 * The headers of a copy. A header given in its redacted form is taken from the task.
 *
 * @throws BadRequest when the task has no such header
 */
export function headersOfCopy(
  presenter: Presenter,
  task: TaskInfo,
  given: Headers | undefined,
): Pick<TaskCopy, 'headers' | 'ownHeaders'> {
  if (given === undefined) return { headers: task.headers, ownHeaders: Object.keys(task.headers) };
  const own = Object.keys(given).filter((name) => given[name] === REDACTED && presenter.hidesHeader(task, name));
  const missing = own.find((name) => !Object.hasOwn(task.headers, name));
  if (missing !== undefined) {
    throw new BadRequest(
      `the header "${missing}" is given as ${REDACTED}, but the task has no such header; give it a value`,
    );
  }
  const headers = Object.entries(given).map(([name, value]) => [
    name,
    own.includes(name) ? task.headers[name]! : value,
  ]);
  return { headers: Object.fromEntries(headers) as Headers, ownHeaders: own };
}

/**
 * Another type, queue or header may select other rules or another decoder. Then the copy could show
 * what the task hides.
 *
 * @throws ApiError when the copy would show more
 */
export function requireSameRedaction(presenter: Presenter, task: TaskInfo, copy: TaskCopy): void {
  const showsHeader = copy.ownHeaders.some(
    (name) => presenter.hidesHeader(task, name) && !presenter.hidesHeader(copy, name),
  );
  if (!showsHeader && (!copy.samePayload || presenter.hidesInCopy(task, copy))) return;
  throw new ApiError(
    'FORBIDDEN',
    `task "${task.id}" is redacted, and a copy with this type, queue and headers would show its hidden parts; leave them unchanged`,
  );
}

/**
 * A unique lock shows whether another task has the same payload, so repeated guesses could find
 * what is hidden.
 *
 * @param given the requested seconds; `undefined` when the application asks for a lock by default
 * @throws ApiError
 */
export function refuseUniqueLock(presenter: Presenter, task: Subject, given: number | undefined): void {
  if (presenter.mayBeCompared(task)) return;
  const remedy =
    given === undefined ? "AsynqModule's option defaults asks for it; enqueue it by the application" : 'leave it out';
  throw new ApiError(
    'FORBIDDEN',
    `payloads of "${task.type}" are redacted, and unique_seconds would reveal whether another task has the same one; ${remedy}`,
  );
}
