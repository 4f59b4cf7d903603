import type { RecordedAction } from '../../../event-streams/audit-trail.js';
import { CONSOLE_ACTIONS, CONSOLE_OUTCOMES } from '../../../events/console-action.js';
import { describe, nearest } from '../../../validation.js';
import { TASK_STATES } from '../../../wire/states.js';
import type { Dashboard } from '../../dashboard.js';
import type { Permissions } from '../../permissions.js';
import { BadRequest } from '../api-error.js';
import { given, PAGE_PARAMETERS, sizeOf } from '../query.js';
import type { ApiRequest, Route } from '../route.js';
import { count, listOf, oneOf, orNull, ref, shape, text, time } from '../schema.js';
import { goTime } from '../shapes/times.js';

const PAGE_SIZE = 500;

const OPTIONAL = {
  queue: text('of a refused attempt it may not exist'),
  to_queue: text('of a clone into another queue'),
  task_id: text(),
  new_task_id: text('of the task that was made'),
  scope: oneOf(
    ['batch', 'all', 'matching'],
    'of several tasks: those that were named, all in the state, or those that match',
  ),
  criteria: text('of tasks that match: what they had to have; of payload, field and error only the names'),
  state: oneOf(TASK_STATES),
  group: text(),
  schedule: text('the id of the entry'),
  workflow: text('the id of the run'),
  batch: text(),
  row: text('the id of a row of the outbox'),
  detail: text('of cancel the outcome; of delete_queue `force`; of signal its name'),
  count: count('of several tasks: how many succeeded'),
  failed: count('of several tasks: how many failed'),
  code: text('why it failed or was refused, as in X-Asynq-Error'),
  missing: count('entries of the same process, before this one, that are not in the trail'),
};

export const auditSchemas = {
  AuditEntry: shape(
    {
      id: text('later entries have greater ones'),
      at: time('when it was asked for'),
      actor: text(),
      action: oneOf(CONSOLE_ACTIONS),
      outcome: oneOf(CONSOLE_OUTCOMES, '`started`: under way, or its process ended before the result was known'),
      process: text('host:pid'),
      ...OPTIONAL,
    },
    Object.keys(OPTIONAL),
  ),
};

type Fits = (action: RecordedAction) => boolean;

/** Reads one entry more than shown, so that the cursor does not depend on hidden entries. */
async function list(dashboard: Dashboard, { query, permissions }: ApiRequest) {
  const size = sizeOf(query);
  const fits = matcher(query);
  const found = await collect(dashboard, checkCursor(given(query, 'cursor')), size + 1, (action) => {
    return maySee(permissions, action) && fits(action);
  });
  const shown = found.slice(0, size);
  return {
    entries: shown.map((action) => showAction(action, permissions)),
    next_cursor: found.length > size ? shown.at(-1)!.id : null,
  };
}

async function collect(
  { trail }: Dashboard,
  cursor: string | undefined,
  most: number,
  fits: Fits,
): Promise<RecordedAction[]> {
  const found: RecordedAction[] = [];
  let before = cursor;
  do {
    const page = await trail.read(before, PAGE_SIZE);
    found.push(...page.actions.filter(fits));
    before = page.before;
  } while (before !== undefined && found.length < most);
  return found.slice(0, most);
}

/** An entry without a queue is visible to those who may see all queues. */
function maySee(permissions: Permissions, { queue, toQueue }: RecordedAction): boolean {
  const queues = [queue, toQueue].filter((name) => name !== undefined);
  return queues.length === 0 ? permissions.mayEverywhere('view') : queues.every((name) => permissions.maySee(name));
}

function matcher(query: URLSearchParams): Fits {
  const [queue, actor] = [given(query, 'queue'), given(query, 'actor')];
  const action = oneFrom(CONSOLE_ACTIONS, given(query, 'action'), 'action');
  const outcome = oneFrom(CONSOLE_OUTCOMES, given(query, 'outcome'), 'outcome');
  return (entry) =>
    (queue === undefined || entry.queue === queue || entry.toQueue === queue) &&
    (actor === undefined || entry.actor === actor) &&
    (action === undefined || entry.action === action) &&
    (outcome === undefined || entry.outcome === outcome);
}

/** @throws BadRequest */
function oneFrom(known: readonly string[], name: string | undefined, parameter: string): string | undefined {
  if (name === undefined || known.includes(name)) return name;
  const near = nearest(name, known);
  const remedy = near ? `did you mean "${near}"?` : `known are ${known.join(', ')}`;
  throw new BadRequest(`${parameter} is ${describe(name)}; ${remedy}`);
}

/** @throws BadRequest */
function checkCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined || /^\d{1,15}-\d{1,15}$/.test(cursor)) return cursor;
  throw new BadRequest(`cursor is ${describe(cursor)}; give the next_cursor of the previous page`);
}

/** The number of missing entries may count other queues. */
const showAction = (
  { at, toQueue, taskId, newTaskId, missing, ...rest }: RecordedAction,
  permissions: Permissions,
) => ({
  ...rest,
  at: goTime(at),
  missing: permissions.mayEverywhere('view') ? missing : undefined,
  to_queue: toQueue,
  task_id: taskId,
  new_task_id: newTaskId,
});

export const auditRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'audit',
    summary: 'Changes made through the console, newest first',
    scope: 'filtered',
    query: [
      ...PAGE_PARAMETERS.filter(({ name }) => name === 'size'),
      { name: 'cursor', description: 'the next_cursor of the previous page' },
      { name: 'queue', description: 'the name of a queue' },
      { name: 'actor', description: 'the whole name' },
      { name: 'action', description: `one of ${CONSOLE_ACTIONS.join(', ')}` },
      { name: 'outcome', description: `one of ${CONSOLE_OUTCOMES.join(', ')}` },
    ],
    reply: shape({ entries: listOf(ref('AuditEntry')), next_cursor: orNull(text('null at the end')) }),
    handle: list,
  },
];
