import { describe, expect } from 'vitest';
import type { Broker } from '../../../lib/broker/broker.js';
import { InvalidOptionError } from '../../../lib/errors.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import type { TaskCriteria } from '../../../lib/inspector/criteria.js';
import type { TaskMessage } from '../../../lib/wire/message.js';
import { request } from '../../support/messages.js';
import { archival, completion, type Driver, type DriverTest, retrial } from '../driver.js';

const inspectorOf = ({ broker }: Driver): AsynqInspector => new AsynqInspector(broker);

const json = (value: unknown) => ({ payload: Buffer.from(JSON.stringify(value)) });

/** Archives a task with an error, by the name of its id. */
async function archive(driver: Driver, id: string, partial: Partial<TaskMessage> = {}): Promise<void> {
  const task = await driver.takeNew({ id, ...partial });
  const failed = { ...task.message, errorMsg: `${id} failed`, lastFailedAt: driver.now };
  await driver.settle(archival({ ...task, message: failed }));
}

export function exerciseFilteredActions(it: DriverTest): void {
  describe('actions on tasks that match', () => {
    it.for<[criteria: TaskCriteria, ids: string[]]>([
      [{ type: 'email:' }, ['a', 'b']],
      [{ id: 'b' }, ['b']],
      [{ error: 'c failed' }, ['c']],
      [{ payload: 'seven' }, ['c']],
      [{ payload: { 'order.id': 7 } }, ['a', 'c']],
      [{ payload: { 'order.id': 7, 'a.b': null } }, ['a']],
      [{ payload: { 'order.id': '7' } }, []],
      [{ where: ({ maxRetry }) => maxRetry === 3 }, ['b']],
      [{ type: 'email:', payload: { 'order.id': 7 } }, ['a']],
      [{ olderThan: '10m' }, ['a']],
      [{}, ['a', 'b', 'c']],
    ])('%j: are counted first, and no other is touched', async ([criteria, ids], { driver }) => {
      await archive(driver, 'a', { type: 'email:x', ...json({ order: { id: 7 }, 'a.b': null }) });
      driver.clock.advance(600_000);
      await archive(driver, 'b', { type: 'email:y', maxRetry: 3, payload: Buffer.from('no JSON') });
      await archive(driver, 'c', { type: 'sms:x', ...json({ order: { id: 7 }, text: 'seven' }) });
      const inspector = inspectorOf(driver);
      expect(await inspector.countTasks('default', 'archived', criteria)).toBe(ids.length);
      expect(await inspector.runAllTasks('default', 'archived', criteria)).toEqual({ moved: ids.length, skipped: 0 });
      expect((await driver.queue()).pending.toSorted()).toEqual(ids);
    });

    it('are archived and deleted', async ({ driver }) => {
      for (const type of ['x', 'x', 'y']) await driver.add({ type });
      const inspector = inspectorOf(driver);
      expect(await inspector.archiveAllTasks('default', 'pending', { type: 'x' })).toEqual({ moved: 2, skipped: 0 });
      expect(await inspector.deleteAllTasks('default', 'archived', { type: 'y' })).toEqual({ moved: 0, skipped: 0 });
      expect(await inspector.deleteAllTasks('default', 'archived', { type: 'x' })).toEqual({ moved: 2, skipped: 0 });
      expect(await driver.queue()).toMatchObject({ pending: [expect.any(String)], archived: [] });
    });

    it('leave a long list of pending tasks in its order', async ({ driver }) => {
      const ids = Array.from({ length: 2_600 }, (_, index) => `t${index}`);
      await driver.broker.producer.enqueue(
        'default',
        ids.map((id, index) => request({ id, type: index % 3 === 0 ? 'x' : 'y' })),
      );
      const inspector = inspectorOf(driver);
      expect(await inspector.archiveAllTasks('default', 'pending', { type: 'x' })).toEqual({ moved: 867, skipped: 0 });
      const left = ids.filter((_, index) => index % 3 !== 0);
      const far = [left[1_500]!, left[10]!, 'nobody', 't0', left[1_500]!, left[1_600]!];
      const { administration } = driver.broker;
      const statuses = await administration.moveTasks('default', 'delete', far, { state: 'pending' });
      expect(statuses).toEqual(['moved', 'moved', 'missing', 'elsewhere', 'missing', 'moved']);
      const kept = left.filter((id) => !far.includes(id));
      const listed: string[] = [];
      for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
        const page = await driver.broker.listing.listIds('default', { state: 'pending', size: 1_000, cursor });
        listed.push(...page.ids);
        cursor = page.cursor;
      }
      expect(listed).toEqual(kept);
    });

    it('are left alone when they have left the state meanwhile', async ({ driver }) => {
      for (const id of ['one', 'two']) await driver.add({ id, type: 'x' });
      const { administration } = driver.broker;
      const moveTasks: typeof administration.moveTasks = async (...args) => {
        await driver.takeOne(); // between the reading and the action
        return administration.moveTasks(...args);
      };
      const broker = Object.create(driver.broker, { administration: { value: { moveTasks } } }) as Broker;
      const result = await new AsynqInspector(broker).deleteAllTasks('default', 'pending', { type: 'x' });
      expect(result).toEqual({ moved: 1, skipped: 1 });
      expect((await driver.queue()).active).toHaveLength(1);
    });

    it('know since when a task is pending, failed or completed', async ({ driver }) => {
      const [completed, failed] = [await driver.takeNew(), await driver.takeNew()];
      const done = { ...completed, message: { ...completed.message, completedAt: driver.now } };
      const again = { ...failed, message: { ...failed.message, lastFailedAt: driver.now } };
      await driver.settle(completion(done, driver.now + 999), retrial(again, driver.now + 999));
      await driver.add();
      driver.clock.advance(60_000);
      const inspector = inspectorOf(driver);
      for (const state of ['pending', 'completed', 'retry'] as const) {
        expect(await inspector.countTasks('default', state, { olderThan: '1m' })).toBe(1);
        expect(await inspector.countTasks('default', state, { olderThan: '61s' })).toBe(0);
      }
    });

    it('cancel those that run', async ({ driver }) => {
      const server = {
        host: 'h',
        pid: 1,
        serverId: 's',
        concurrency: 9,
        queues: { default: 1 },
        strictPriority: false,
      };
      const [old, other] = [await driver.takeNew({ type: 'x' }), await driver.takeNew({ type: 'x' })];
      const workers = [old, other].map(({ lease, message }, index) => ({
        host: 'h',
        pid: 1,
        serverId: 's',
        taskId: lease.id,
        taskType: message.type,
        taskPayload: message.payload,
        queue: 'default',
        startTime: driver.clock.now() - (index === 0 ? 60_000 : 0),
        deadline: 0,
      }));
      const info = { ...server, status: 'active', startTime: 0, activeWorkerCount: 2 };
      await driver.broker.monitoring.writeServerState(info, workers, 10);
      const inspector = inspectorOf(driver);
      expect(await inspector.countTasks('default', 'active', { type: 'x' })).toBe(2);
      const options = { type: 'x', olderThan: '1m', reason: 'too long', outcome: 'archive' } as const;
      expect(await inspector.cancelAllTasks('default', options)).toBe(1);
      const found = await driver.broker.cancellation.findCancellations([old.lease.id, other.lease.id]);
      expect(found).toMatchObject([{ id: old.lease.id, outcome: 'archive', reason: 'too long' }]);
    });

    it('refuse criteria that cannot be meant, before anything is changed', async ({ driver }) => {
      await driver.add();
      const inspector = inspectorOf(driver);
      const refused: [unknown, RegExp][] = [
        [{ typ: 'x' }, /did you mean "type"/],
        [{ type: ' ' }, /type must/],
        [{ payload: {} }, /payload has no field/],
        [{ payload: { a: {} } }, /field "a" of payload must be a text, a number/],
        [{ olderThan: 'soon' }, /olderThan/],
        [{ where: 1 }, /where must be a function/],
      ];
      for (const [criteria, message] of refused) {
        const call = inspector.deleteAllTasks('default', 'pending', criteria as TaskCriteria);
        await expect(call).rejects.toThrow(InvalidOptionError);
        await expect(call).rejects.toThrow(message);
      }
      await expect(inspector.countTasks('default', 'scheduled', { olderThan: '1m' })).rejects.toThrow(
        'nobody stores since when a task is scheduled',
      );
      expect((await driver.queue()).pending).toHaveLength(1);
    });
  });
}
