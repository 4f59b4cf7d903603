import type { TaskInfo } from '../../task/info.js';
import { REDACTED } from '../../redaction/rules.js';
import type { Presenter, Subject } from '../payload/presenter.js';
import { ApiError, BadRequest } from './api-error.js';

/*
 * What is redacted is copied on the server, by whoever may not see it. Whether a copy is refused follows from names, types and
 * rules: never from what is hidden, which could be guessed then.
 */

type Headers = Readonly<Record<string, string>>;

/** What a copy of a task is to be. */
export interface TaskCopy {
  readonly type: string;
  readonly queue: string;
  readonly headers: Headers;
  /** Names of headers that are the task's own. */
  readonly ownHeaders: readonly string[];
  /** Whether its payload is that of the task. */
  readonly samePayload: boolean;
}

/**
 * The headers of a copy; one given as it is shown, hidden, is the task's own.
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
    throw new BadRequest(`the header "${missing}" is given as ${REDACTED}, and the task has none; give it a value`);
  }
  const headers = Object.entries(given).map(([name, value]) => [
    name,
    own.includes(name) ? task.headers[name]! : value,
  ]);
  return { headers: Object.fromEntries(headers) as Headers, ownHeaders: own };
}

/**
 * A copy of another type, in another queue or with other headers may fall under other rules, or be read by another decoder: then it would
 * show what the task itself hides.
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
    `task "${task.id}" is redacted, and a copy with this type, queue and headers would show what is hidden of it; leave them as they are`,
  );
}

/**
 * A lock tells whether another task has the same payload: whoever may guess often enough would find out what is hidden.
 *
 * @param given the seconds asked for; `undefined` where the application asks for a lock by default
 * @throws ApiError
 */
export function refuseUniqueLock(presenter: Presenter, task: Subject, given: number | undefined): void {
  if (presenter.mayBeCompared(task)) return;
  const remedy =
    given === undefined ? "AsynqModule's option defaults asks for it; enqueue it by the application" : 'leave it out';
  throw new ApiError(
    'FORBIDDEN',
    `payloads such as this one of "${task.type}" are redacted, and unique_seconds would tell whether another task has the same; ${remedy}`,
  );
}
