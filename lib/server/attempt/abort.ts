import type { Clock } from '../../clock.js';
import type { AsynqError } from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
import type { ActiveTask } from './active-task.js';

/** Time after which a handler that ignores its abort signal is reported. */
const STUCK_AFTER_MS = 10_000;

/** Asks a handler to stop whose attempt has ended without it. */
export function abort(task: ActiveTask, reason: AsynqError, clock: Clock, events: AsynqEvents): void {
  task.abort(reason);
  clock.after(STUCK_AFTER_MS, () => {
    if (!task.handlerSettled) events.emit('handlerStuck', { task, reason, seconds: STUCK_AFTER_MS / 1000 });
  });
}
