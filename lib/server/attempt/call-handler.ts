import { isThenable } from '../../async.js';
import type { ActiveTask } from './active-task.js';
import type { SingleHandlerEntry } from './handler.js';

export interface HandlerListener {
  /** The handler has returned or thrown `value`. */
  end(task: ActiveTask, succeeded: boolean, value: unknown): void;
}

/** Calls the handler. One that returns no promise has ended before this returns. */
export function callHandler(task: ActiveTask, { handle }: SingleHandlerEntry, listener: HandlerListener): void {
  let returned: unknown;
  let promise: Promise<unknown> | undefined;
  try {
    returned = task.span ? withinSpan(task, handle) : handle(task);
    // A thenable that is no real promise may throw, or resolve to one more.
    promise = isThenable(returned) ? Promise.resolve(returned) : undefined;
  } catch (error) {
    return listener.end(task, false, error);
  }
  if (promise) whenSettled(promise, task, listener);
  else listener.end(task, true, returned);
}

// Functions of their own: a call of a handler that returns no promise makes no closure.

function withinSpan(task: ActiveTask, handle: SingleHandlerEntry['handle']): unknown {
  return task.span!.run(() => handle(task));
}

function whenSettled(promise: Promise<unknown>, task: ActiveTask, listener: HandlerListener): void {
  promise.then(
    (result) => listener.end(task, true, result),
    (error: unknown) => listener.end(task, false, error),
  );
}
