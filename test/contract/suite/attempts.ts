import { describe, expect } from 'vitest';
import { MAX_ATTEMPTS } from '../../../lib/broker/attempts.js';
import type { LeasedTask } from '../../../lib/broker/broker.js';
import { type Driver, type DriverTest, archival, completion, retrial } from '../driver.js';

const note = (text: string, most = 10) => ({ attempt: { text, most } });

const read = async ({ broker }: Driver, { lease }: LeasedTask): Promise<[number, string][]> =>
  (await broker.inspection.attempts('default', lease.id)).map(({ n, text }) => [n, text]);

/** Settles with a retry, and takes the task again. */
async function retry(driver: Driver, task: LeasedTask, text: string, most?: number): Promise<LeasedTask> {
  expect(await driver.settle({ ...retrial(task, driver.now), ...note(text, most) })).toEqual(['settled']);
  await driver.broker.maintenance.forward('default');
  return driver.takeOne();
}

export function exerciseAttempts(it: DriverTest): void {
  describe('the history of attempts', () => {
    it('is empty at first, and of a task that does not exist', async ({ driver }) => {
      const task = await driver.takeNew();
      expect(await read(driver, task)).toEqual([]);
      await driver.settle(retrial(task, driver.now + 60));
      expect(await read(driver, task)).toEqual([]);
      expect(await driver.broker.inspection.attempts('default', 'none')).toEqual([]);
      expect(await driver.broker.inspection.attempts('nowhere', 'none')).toEqual([]);
    });

    it('gets an entry with each retry, the archiving and a success, in their order', async ({ driver }) => {
      const first = await driver.takeNew({ uniqueKey: 'asynq:{default}:unique:x' }, { uniqueTtl: 60 });
      const second = await retry(driver, first, '["ä\\n"]');
      expect(await driver.settle({ ...retrial(second, driver.now, false), ...note('["b"]') })).toEqual(['settled']);
      await driver.broker.maintenance.forward('default');
      const third = await driver.takeOne();
      await driver.settle({ ...archival(third), ...note('["c"]') });
      await driver.broker.administration.moveTasks('default', 'run', [third.lease.id]);
      const last = await driver.takeOne();
      const kept = { ...completion(last, driver.now + 60, Buffer.from('result')), ...note('["d"]') };
      expect(await driver.settle(kept)).toEqual(['settled']);
      const entries = [
        [0, '["ä\\n"]'],
        [1, '["b"]'],
        [2, '["c"]'],
        [3, '["d"]'],
      ];
      expect(await read(driver, last)).toEqual(entries);
      const task = await driver.broker.inspection.getTask('default', last.lease.id);
      expect([task?.state, task?.result?.toString()]).toEqual(['completed', 'result']);
      expect((await driver.queue()).locks).toEqual({}); // its flag is beside the entry
      await driver.broker.administration.moveTasks('default', 'delete', [last.lease.id]);
      expect(await read(driver, last)).toEqual([]);
    });

    it('gets one when the steps of a task that failed are to be undone', async ({ driver }) => {
      const task = await driver.takeNew();
      const checkpoint = { name: '!undo', bytes: Buffer.from('{"error":"x","outcome":"archive","at":1}\n') };
      const { lease } = task;
      await driver.settle({ kind: 'sleep', lease, wakeAt: driver.now, checkpoint, atOnce: true, ...note('["x"]') });
      expect(await driver.stateOf(lease.id)).toBe('pending');
      expect(await read(driver, task)).toEqual([[0, '["x"]']]);
    });

    it('keeps the last ones, as many as the settlement says', async ({ driver }) => {
      let task = await driver.takeNew();
      for (let n = 0; n < 7; n++) task = await retry(driver, task, `[${n}]`, 4);
      expect(await read(driver, task)).toEqual([3, 4, 5, 6].map((n) => [n, `[${n}]`]));
      task = await retry(driver, task, '[7]', 2);
      expect(await read(driver, task)).toEqual([6, 7].map((n) => [n, `[${n}]`]));
      for (let n = 8; n < 10; n++) task = await retry(driver, task, `[${n}]`, 3);
      expect(await read(driver, task)).toEqual([7, 8, 9].map((n) => [n, `[${n}]`]));
    });

    it('has no more than a hundred', async ({ driver }) => {
      let task = await driver.takeNew();
      for (let n = 0; n <= MAX_ATTEMPTS; n++) task = await retry(driver, task, `[${n}]`, MAX_ATTEMPTS);
      expect((await read(driver, task)).map(([n]) => n)).toEqual(Array.from({ length: 100 }, (_, n) => n + 1));
      task = await retry(driver, task, '[101]', 1);
      expect(await read(driver, task)).toEqual([[101, '[101]']]);
    });

    it('gets nothing from a server that has lost the lease', async ({ driver }) => {
      const task = await driver.takeNew();
      await driver.settle({ kind: 'requeue', lease: task.lease });
      driver.clock.advance(5_000);
      await driver.takeOne();
      expect(await driver.settle({ ...retrial(task, driver.now), ...note('[1]') })).toEqual(['lost']);
      expect(await read(driver, task)).toEqual([]);
    });

    it('is noted for each task of an exchange, whatever the others do', async ({ driver }) => {
      const [one, two, three, four] = (await driver.takeNewMany(4)) as [LeasedTask, LeasedTask, LeasedTask, LeasedTask];
      await driver.settle(
        { kind: 'done', lease: one.lease, uniqueKey: '' },
        { ...retrial(two, driver.now + 60), ...note('[2]') },
        retrial(three, driver.now + 60),
        { ...archival(four), ...note('[4]') },
      );
      expect(await Promise.all([one, two, three, four].map((task) => read(driver, task)))).toEqual([
        [],
        [[0, '[2]']],
        [],
        [[0, '[4]']],
      ]);
    });
  });
}
