import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { createHash } from 'node:crypto';
import { AsynqError, AsynqInspector } from 'nestjs-asynq';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { refusalOf } from '../../lib/cli/dash/actions.js';
import { bulkActionsFor } from '../../lib/dashboard/web/list/bulk-actions.js';
import { isAllowed, STATES_BY_ACTION, TASK_ACTIONS, type TaskAction } from '../../lib/task/actions.js';
import { TASK_STATES, type TaskState } from '../../lib/wire/states.js';
import { readableProgram } from '../support/command-line.js';
import { arrangeEveryState, arrangeHeld, arrangeWaiting } from '../support/every-state.js';
import { startConsole, type TestConsole } from './console.js';

/* Everything that offers or refuses an action agrees with the table of lib/task/actions.ts. */

const PAIRS = TASK_STATES.flatMap((state) => TASK_ACTIONS.map((action) => [state, action] as const));
const MOVES = ['run', 'archive', 'delete'] as const;
const BULK: readonly TaskAction[] = [...MOVES, 'cancel'];
const NEW_PAYLOAD = { payload: { new: true }, payload_text: undefined };

const pathOf = (state: TaskState): string =>
  `queues/default/${state === 'aggregating' ? 'groups/g/' : ''}${state}_tasks`;

describe('the table of states and actions', () => {
  let web: TestConsole;
  let broker: InMemoryBroker;
  let inspector: AsynqInspector;

  beforeAll(async () => {
    web = await startConsole({ access: 'destroy' });
    broker = web.broker as InMemoryBroker;
    inspector = new AsynqInspector(broker);
  });
  beforeEach(async () => {
    broker.clear();
    await arrangeHeld(broker);
    await arrangeEveryState(broker);
    await arrangeWaiting(broker);
  });
  afterAll(() => web.close());

  describe('the inspector', () => {
    const one: Partial<Record<TaskAction, (id: string) => Promise<unknown>>> = {
      run: (id) => inspector.runTask('default', id),
      archive: (id) => inspector.archiveTask('default', id),
      delete: (id) => inspector.deleteTask('default', id),
      reschedule: (id) => inspector.rescheduleTask('default', id, '1h'),
      edit: (id) => inspector.updateTaskPayload('default', id, NEW_PAYLOAD),
    };
    const all: Partial<Record<TaskAction, AsynqInspector['runAllTasks']>> = {
      run: (...args) => inspector.runAllTasks(...args),
      archive: (...args) => inspector.archiveAllTasks(...args),
      delete: (...args) => inspector.deleteAllTasks(...args),
    };

    it.each(PAIRS.filter(([, action]) => one[action]))('a task that is %s: %s', async (state, action) => {
      const act = one[action]!(state);
      if (isAllowed(action, state)) await act;
      else await expect(act).rejects.toThrow(AsynqError);
    });

    it.each(PAIRS.filter(([, action]) => all[action]))('all tasks that are %s: %s', async (state, action) => {
      const group = state === 'aggregating' ? 'g' : undefined;
      const act = all[action]!('default', state as Exclude<TaskState, 'active'>, { group });
      if (isAllowed(action, state)) expect(await act).toEqual({ moved: 1, skipped: 0 });
      else await expect(act).rejects.toThrow(AsynqError);
    });
  });

  describe('the REST API', () => {
    const BODIES: Partial<Record<TaskAction, (id: string) => object>> = {
      reschedule: () => ({ process_in_seconds: 60 }),
      edit: (id) => ({ payload: 1, replaces: createHash('sha256').update(`{"id":"${id}"}`).digest('hex') }),
    };
    const request = (action: TaskAction, id: string): [string, string] => {
      if (action === 'delete') return ['DELETE', `queues/default/tasks/${id}`];
      return ['POST', `queues/default/tasks/${id}:${action === 'edit' ? 'edit_payload' : action}`];
    };

    it.each(TASK_STATES)('offers what a task that is %s allows', async (state) => {
      const { actions } = await web.get<{ actions: TaskAction[] }>(`queues/default/tasks/${state}`);
      expect(actions).toEqual(TASK_ACTIONS.filter((action) => isAllowed(action, state)));
    });

    // A cancellation is a request to whichever server runs the task: it is accepted for any task.
    it.each(PAIRS.filter(([, action]) => action !== 'cancel'))('a task that is %s: %s', async (state, action) => {
      const { status } = await web.api(...request(action, state), BODIES[action]?.(state));
      expect(Math.floor(status / 100)).toBe(isAllowed(action, state) ? 2 : 4);
    });

    it.each(PAIRS.filter(([, action]) => BULK.includes(action)))('all tasks that are %s: %s', async (state, action) => {
      const all = action === 'delete' ? 'DELETE' : 'POST';
      const statuses = [
        (await web.api('POST', `${pathOf(state)}:batch_${action}`, { task_ids: [state] })).status,
        (await web.api(all, `${pathOf(state)}:${action}_all`)).status,
      ];
      const ok = statuses.map((status) => status < 300);
      expect(ok).toEqual([isAllowed(action, state), isAllowed(action, state)]);
    });
  });

  it.each(TASK_STATES)('the page offers what lists of %s tasks allow', (state) => {
    expect(bulkActionsFor(state).toSorted()).toEqual(BULK.filter((action) => isAllowed(action, state)).toSorted());
  });

  it.each(MOVES)('the command line takes its states for "%sall"', (action) => {
    const group = readableProgram().commands.find((one) => one.name() === 'task');
    const command = group?.commands.find((one) => one.name() === `${action}all`);
    const option = command?.options.find(({ long }) => long === '--state');
    expect(option?.argChoices).toEqual(STATES_BY_ACTION[action]);
  });

  it.each(PAIRS.filter(([, action]) => BULK.includes(action)))(
    'the dashboard of the terminal: %s, %s',
    (state, action) => {
      expect(refusalOf(action as (typeof MOVES)[number], state) === undefined).toBe(isAllowed(action, state));
    },
  );
});
