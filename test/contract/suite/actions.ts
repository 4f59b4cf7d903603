import { describe, expect } from 'vitest';
import { isAllowed, TASK_ACTIONS, type TaskAction } from '../../../lib/task/actions.js';
import { STORED_STATES } from '../../../lib/wire/states.js';
import { type Driver, type DriverTest, expectUnchanged } from '../driver.js';

type Act = (driver: Driver, id: string) => Promise<unknown>;

/** The actions that a broker allows or rejects by the state of the task. */
const ACTIONS: Partial<Record<TaskAction, Act>> = {
  run: async ({ broker }, id) => (await broker.administration.moveTasks('default', 'run', [id]))[0],
  archive: async ({ broker }, id) => (await broker.administration.moveTasks('default', 'archive', [id]))[0],
  delete: async ({ broker }, id) => (await broker.administration.moveTasks('default', 'delete', [id]))[0],
  reschedule: async ({ broker, now }, id) => (await broker.administration.rescheduleTasks('default', [id], now + 9))[0],
  edit: ({ broker }, id) => broker.administration.updatePayload('default', id, Buffer.from('new')),
};

const PAIRS = STORED_STATES.flatMap((state) =>
  TASK_ACTIONS.filter((action) => ACTIONS[action]).map((action) => [state, action] as const),
);

export function exerciseActions(it: DriverTest): void {
  describe('the table of states and actions', () => {
    it.for(PAIRS)('%s: %s', async ([state, action], { driver }) => {
      const id = await driver.arrange(state);
      const act = () => ACTIONS[action]!(driver, id);
      if (isAllowed(action, state)) return expect(await act()).toBe(action === 'edit' ? 'updated' : 'moved');
      await expectUnchanged(driver, async () => expect(['active', 'same', 'notEditable']).toContain(await act()));
    });
  });
}
