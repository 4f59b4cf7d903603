import type { TaskInfo } from '../../task/info.js';
import type { Presenter } from '../payload/presenter.js';
import { REDACTED } from '../payload/redactor.js';
import { ApiError } from './api-error.js';

/** What a copy of a task is to be. */
export interface Copy {
  readonly type: string;
  readonly queue: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether its payload is that of the task. */
  readonly samePayload: boolean;
}

type Headers = Readonly<Record<string, string>>;

/** The headers given for a copy; one given as it is shown, hidden, is the task's own. */
export function restoreHeaders(presenter: Presenter, task: TaskInfo, given: Headers | undefined): Headers {
  if (given === undefined) return task.headers;
  const shown = presenter.present(task, false).headers;
  const restored = Object.entries(given).map(([name, value]) => {
    const hidden = value === REDACTED && Object.hasOwn(shown, name) && shown[name] === REDACTED;
    return [name, hidden ? task.headers[name]! : value];
  });
  return Object.fromEntries(restored) as Headers;
}

/**
 * A copy of another type, in another queue or with other headers may fall under other rules, or be read by another decoder: then it would
 * show what the task itself hides.
 *
 * @throws ApiError when the copy would show more
 */
export function requireAsHidden(presenter: Presenter, task: TaskInfo, copy: Copy): void {
  if (!presenter.isRedacted(task)) return;
  const [before, after] = [presenter.present(task, false), presenter.present({ ...task, ...copy }, false)];
  const shown = Object.keys(before.headers).filter(
    (name) => before.headers[name] === REDACTED && copy.headers[name] === task.headers[name],
  );
  const reveals = shown.some((name) => after.headers[name] !== REDACTED);
  if (!reveals && (!copy.samePayload || before.payload === after.payload)) return;
  throw new ApiError(
    'FORBIDDEN',
    `task "${task.id}" is redacted, and a copy with this type, queue and headers would show what is hidden of it; leave them as they are`,
  );
}

/** A lock tells whether another task has the same payload: whoever may guess often enough would find out what is hidden. @throws ApiError */
export function refuseLock(presenter: Presenter, task: { type: string; queue: string }, unique: unknown): void {
  if (!unique || !presenter.isRedacted(task)) return;
  throw new ApiError(
    'FORBIDDEN',
    `tasks of type "${task.type}" are redacted, and unique_seconds would tell whether one has a certain payload; leave it out`,
  );
}
