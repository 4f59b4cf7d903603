import type { Clock } from '../../clock.js';
import type { AsynqEvents, TaskOutcomeKind } from '../../events/events.js';
import type { ActiveTask } from './active-task.js';

/** A handler is about to be called. What listeners do belongs to the trace of the task. */
export function emitStarted(events: AsynqEvents, task: ActiveTask): void {
  if (task.span) task.span.run(() => emitStartedUntraced(events, task));
  else emitStartedUntraced(events, task);
}

/** The outcome of an attempt is stored, or it is lost. */
export function emitFinished(events: AsynqEvents, clock: Clock, task: ActiveTask, outcome: TaskOutcomeKind): void {
  if (task.span) task.span.run(() => emitFinishedUntraced(events, clock, task, outcome));
  else emitFinishedUntraced(events, clock, task, outcome);
}

function emitStartedUntraced(events: AsynqEvents, task: ActiveTask): void {
  const { retried, maxRetry, waited } = task;
  events.emit('taskStarted', { task, retried, maxRetry, waited });
}

function emitFinishedUntraced(events: AsynqEvents, clock: Clock, task: ActiveTask, outcome: TaskOutcomeKind): void {
  const { verdict, retried, maxRetry, waited } = task;
  const settlement = verdict?.settlement;
  events.emit('taskFinished', {
    outcome,
    task,
    retried,
    maxRetry,
    result: verdict?.result,
    error: verdict?.error ?? task.aborted,
    waited,
    retryAt: settlement?.kind === 'retry' ? new Date(settlement.retryAt * 1000) : undefined,
    duration: Math.max(0, (task.endedAt || clock.now()) - task.startedAt),
  });
}
