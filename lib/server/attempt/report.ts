import type { Settlement } from '../../broker/broker.js';
import type { Clock } from '../../clock.js';
import type { AsynqEventMap, AsynqEvents, TaskOutcomeKind } from '../../events/events.js';
import type { ActiveTask } from './active-task.js';

/** A handler is about to be called. */
export function reportStarted(events: AsynqEvents, task: ActiveTask): void {
  if (events.wants('taskStarted')) emitInTrace(task, events, 'taskStarted', startOf(task));
}

/** The outcome of an attempt is stored, or it is lost. */
export function reportFinished(events: AsynqEvents, clock: Clock, task: ActiveTask, outcome: TaskOutcomeKind): void {
  const isTrouble = outcome !== 'done' && outcome !== 'completed';
  if (events.wants('taskFinished', isTrouble))
    emitInTrace(task, events, 'taskFinished', finishOf(task, outcome, clock));
}

/** What listeners do belongs to the trace of the task. */
function emitInTrace<E extends 'taskStarted' | 'taskFinished'>(
  { span }: ActiveTask,
  events: AsynqEvents,
  name: E,
  event: AsynqEventMap[E],
): void {
  if (span) span.run(() => events.emit(name, event));
  else events.emit(name, event);
}

const startOf = (task: ActiveTask): AsynqEventMap['taskStarted'] => {
  const { retried, maxRetry, waited } = task;
  return { task, retried, maxRetry, waited };
};

function finishOf(task: ActiveTask, outcome: TaskOutcomeKind, clock: Clock): AsynqEventMap['taskFinished'] {
  const { verdict, retried, maxRetry, waited } = task;
  const settlement = verdict?.settlement;
  return {
    outcome,
    task,
    retried,
    maxRetry,
    result: verdict?.result,
    error: verdict?.error ?? task.aborted,
    waited,
    retryAt: nextAt(settlement),
    duration: Math.max(0, (task.endedAt || clock.now()) - task.startedAt),
  };
}

/** When the task runs again; undefined when that is not known. */
function nextAt(settlement: Settlement | undefined): Date | undefined {
  if (settlement?.kind === 'retry') return new Date(settlement.retryAt * 1000);
  return settlement?.kind === 'sleep' ? new Date(settlement.wakeAt * 1000) : undefined;
}
