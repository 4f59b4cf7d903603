import type { ConsoleAction } from '../events/console-action.js';
import { count, errorText, type Wording } from './wording.js';

export const CONSOLE: Wording = {
  consoleAction: (action, logger) => {
    const line = `Console: ${describeAction(action)}${missing(action)}`;
    if (action.outcome === 'done' && !action.failed) logger.log(line);
    else logger.warn(line);
  },
  consoleTrailFailed: ({ action, error }, logger) =>
    logger.error(
      `The audit trail of the console cannot be written, and lacks: ${describeAction(action)}: ${errorText(error)}`,
    ),
};

/**
 * `"alice" archive all retry tasks of queue "mail": done, 12 tasks`. Names are quoted, so that none
 * looks like a part of the message.
 */
function describeAction(action: ConsoleAction): string {
  const { actor, outcome, count: done, failed, code, newTaskId, process } = action;
  const results = [
    code === undefined ? outcome : `${outcome} (${code})`,
    done === undefined ? '' : count(done, 'task'),
    failed ? `not ${count(failed, 'task')}` : '',
    newTaskId === undefined ? '' : `new task ${quote(newTaskId)}`,
  ];
  return `${quote(actor)} ${describeTarget(action)}: ${results.filter(Boolean).join(', ')} [${process}]`;
}

const QUANTITIES = { all: 'all', batch: 'some', matching: 'matching' } as const;

function describeTarget({
  action,
  detail,
  queue,
  toQueue,
  taskId,
  group,
  state,
  schedule,
  workflow,
  batch,
  row,
  scope,
  criteria,
}: ConsoleAction): string {
  const words = [
    action.replaceAll('_', ' '),
    scope === undefined ? '' : [QUANTITIES[scope], state, 'tasks'].filter(Boolean).join(' '),
    criteria === undefined ? '' : `with ${quote(criteria)}`,
    taskId === undefined ? '' : `task ${quote(taskId)}`,
    schedule === undefined ? '' : quote(schedule),
    workflow === undefined ? '' : quote(workflow),
    batch === undefined ? '' : quote(batch),
    row === undefined ? '' : `${quote(row)} of the outbox,`,
    group === undefined ? '' : `of group ${quote(group)}`,
    queue === undefined ? '' : `queue ${quote(queue)}`,
    toQueue === undefined ? '' : `into queue ${quote(toQueue)}`,
    detail === undefined ? '' : `(${action === 'signal' ? quote(detail) : detail})`,
  ];
  return words.filter(Boolean).join(' ');
}

const missing = ({ missing: entries }: ConsoleAction): string =>
  entries === undefined ? '' : `; the trail lacks ${entries} before it`;

const quote = (name: string): string => JSON.stringify(name);
