import { expect, it } from 'vitest';
import { CONSOLE_ACTIONS, CONSOLE_OUTCOMES } from '../../../lib/events/console-action.js';
import { ACTIONS, actionText, OUTCOMES, resultText } from '../../../lib/dashboard/web/pages/audit-text.js';

const entry = { id: '1-0', at: '', actor: 'a', process: 'h:1', action: 'archive', outcome: 'done' } as const;

it('the filter offers every action and outcome', () => {
  expect([ACTIONS, OUTCOMES]).toEqual([CONSOLE_ACTIONS, CONSOLE_OUTCOMES]);
});

it.each([
  [{}, 'archive', 'done'],
  [{ task_id: 'x' }, 'archive task', 'done'],
  [{ scope: 'all', state: 'retry', count: 12 }, 'archive all retry tasks', 'done, 12 tasks'],
  [{ scope: 'batch', count: 1, failed: 2 }, 'archive some tasks', 'done, 1 task, not 2 tasks'],
  [{ action: 'cancel', task_id: 'x', detail: 'delete', outcome: 'started' }, 'cancel task, then delete', 'no result'],
  [{ action: 'delete_queue', detail: 'force', outcome: 'refused' }, 'delete queue by force', 'refused'],
] as const)('words %j', (fields, action, result) => {
  const change = { ...entry, ...fields };
  expect([actionText(change), resultText(change)]).toEqual([action, result]);
});
