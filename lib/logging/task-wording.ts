import { hasCode } from '../error-code.js';
import type { TaskOutcome } from '../events/events.js';
import type { AsynqLogger } from '../logger.js';
import { at, count, errorText, stackOf, taskName, type Wording } from './wording.js';

export const TASKS: Wording = {
  taskFinished: (outcome, logger) => logOutcome(outcome, logger),
  refusedAfterCommit: ({ task, error }, logger) =>
    logger.warn(`${taskName(task)}, of a committed transaction, was not enqueued: ${errorText(error)}`),
  lostAfterCommit: ({ tasks, error }, logger) => {
    const names = tasks.slice(0, 10).map(({ type, id }) => `${type} ${id}`);
    const more = tasks.length > names.length ? ', …' : '';
    logger.error(
      `${count(tasks.length, 'task')} of a committed transaction may be lost (${names.join(', ')}${more}): ${errorText(error)}`,
    );
  },
  rowsUnsent: ({ queue, rows, error }, logger) =>
    logger.warn(
      `Queue "${queue}" does not take ${count(rows, 'row')} of the outbox, trying again: ${errorText(error)}`,
    ),
  rowPoisoned: ({ row, queue, error }, logger) =>
    logger.error(`Row ${row} of the outbox, for queue "${queue}", cannot become a task: ${errorText(error)}`),
  handlerStuck: ({ task, reason, seconds }, logger) =>
    logger.error(
      `${taskName(task)} was aborted ${seconds} s ago (${errorText(reason)}), but its handler still runs and keeps ` +
        'its slot; pass task.signal to whatever it waits for',
    ),
  taskDamaged: ({ task, error }, logger) =>
    logger.error(
      `Task ${task.id} in queue "${task.queue}" cannot be decoded and was archived unchanged: ${errorText(error)}`,
    ),
  resultDropped: ({ task, error }, logger) =>
    logger.warn(`${taskName(task)} succeeded, but its result cannot be stored: ${errorText(error)}`),
  hookFailed: ({ hook, error }, logger) =>
    logger.error(`${hook} threw and was ignored: ${errorText(error)}`, stackOf(error)),
  listenerFailed: ({ event, error, listener = 'A listener' }, logger) =>
    logger.error(`${listener} of the event "${event}" threw: ${errorText(error)}`, stackOf(error)),
  eventStreamFailed: ({ error, lost }, logger) =>
    logger.warn(
      `The event stream lacks ${count(lost, 'event')}, and all until it can be written again: ${errorText(error)}`,
    ),
  eventStreamUnread: ({ error }, logger) =>
    logger.warn(`The event stream cannot be read; trying again: ${errorText(error)}`),
  listenersLeft: ({ listeners }, logger) =>
    logger.warn(`${count(listeners, 'listener')} of task events still running at the end, not waiting for them`),
};

function logOutcome({ outcome, task, retried, error, retryAt }: TaskOutcome, logger: AsynqLogger): void {
  const name = taskName(task);
  switch (outcome) {
    case 'retry':
      return logger.warn(
        `${name} failed (failures before: ${retried}), next attempt ${at(retryAt)}: ${errorText(error)}`,
      );
    case 'archived':
      return logger.error(
        `${name} failed and was archived (failures before: ${retried}): ${errorText(error)}`,
        // Of one that was undone it leads to code of this library: that of its cause was logged when it failed.
        hasCode(error, 'ASYNQ_TASK_UNDONE') ? undefined : stackOf(error),
      );
    case 'revoked':
      return logger.log(`${name} was revoked: ${errorText(error)}`);
    case 'postponed':
      return logger.log(`${name} was postponed, next attempt ${at(retryAt)}: ${errorText(error)}`);
    case 'suspended':
      if (error === undefined)
        return logger.log(`${name} sleeps or waits in a step, and goes on ${at(retryAt)} or before`);
      return logger.error(
        `${name} failed for good (failures before: ${retried}), and its steps are undone now: ${errorText(error)}`,
        stackOf(error),
      );
    case 'requeued':
      if (error !== undefined) return logger.log(`${name} was put back to the front of its queue`);
      // A rate counts it again, or the server stopped while it was claimed: common, and nothing has failed.
      return logger.debug(`${name} was put back to the front of its queue before its handler began`);
    case 'lost':
      return logger.warn(
        `${name} was taken over by another server, or deleted; the result of its handler here is ignored`,
      );
    case 'done':
    case 'completed':
  }
}
