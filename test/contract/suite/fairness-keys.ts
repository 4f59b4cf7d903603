import { describe, expect } from 'vitest';
import { InvalidOptionError } from '../../../lib/errors.js';
import type { FairKeyListOptions } from '../../../lib/inspector/fair-keys.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import type { FairShare } from '../../../lib/wire/fairness.js';
import { fairHeader, request } from '../../support/messages.js';
import { type Driver, type DriverTest, done } from '../driver.js';

/** Tasks `a-1`, `a-2` … of the key `a`. */
const tasksOf = (key: string, count: number, share: Partial<FairShare> = {}) =>
  Array.from({ length: count }, (_, index) => request({ id: `${key}-${index + 1}`, headers: fairHeader(key, share) }));

const inspectorOf = ({ broker }: Driver) => new AsynqInspector(broker);

function beFair(driver: Driver): AsynqInspector {
  driver.broker.fairQueues.add('default');
  return inspectorOf(driver);
}

const ALONE = { weight: 1, concurrency: undefined, rate: undefined, held: undefined };

/** Reads all pages. `between` is called after each. */
async function allPending(
  driver: Driver,
  options: { readonly size: number; readonly fairnessKey?: string },
  between: () => Promise<unknown> = () => Promise.resolve(),
): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await inspectorOf(driver).listTasks('default', 'pending', { ...options, cursor });
    expect(page.tasks.length).toBeLessThanOrEqual(options.size);
    expect(page.damaged).toEqual([]);
    found.push(...page.tasks.map(({ id }) => id));
    cursor = page.cursor;
    await between();
  }
  return found;
}

export function exerciseFairnessKeys(it: DriverTest): void {
  describe('the keys of a fair queue', () => {
    it('have what waits and runs, and their limits', async ({ driver }) => {
      const inspector = beFair(driver);
      await driver.enqueue([
        ...tasksOf('a', 4),
        ...tasksOf('b', 3, { weight: 2, concurrency: 1 }),
        ...tasksOf('c', 3, { rate: 1, window: 16_000 }),
        request({ id: 'n-1' }),
      ]);
      await driver.take(9);
      await driver.enqueue(['a-5', 'a-6', 'a-7'].map((id) => request({ id, headers: fairHeader('a') })));
      const { keys, cursor } = await inspector.fairnessKeys('default');
      expect(keys).toMatchObject([
        { ...ALONE, key: 'a', waiting: 3, running: 4 },
        { key: 'b', waiting: 2, running: 1, weight: 2, concurrency: 1, rate: undefined, held: { by: ['concurrency'] } },
        { key: 'c', waiting: 2, running: 1, weight: 1, concurrency: undefined, rate: { max: 1, per: 16_000 } },
      ]);
      expect([keys.length, cursor]).toEqual([3, undefined]);
    });

    it('are held by their limits, and say until when', async ({ driver }) => {
      const inspector = beFair(driver);
      await driver.enqueue([
        ...tasksOf('a', 1),
        ...tasksOf('b', 3, { concurrency: 2 }),
        ...tasksOf('c', 3, { rate: 2, window: 16_000 }),
      ]);
      const taken = await driver.take(9);
      const held = async () => (await inspector.fairnessKeys('default', { held: true, sort: 'name' })).keys;
      const now = driver.clock.now();
      expect(await held()).toMatchObject([
        { key: 'b', waiting: 1, running: 2, held: { by: ['concurrency'], until: new Date(now + 2_000) } },
        { key: 'c', waiting: 1, running: 2, held: { by: ['rate'] } },
      ]);
      const until = (await held())[1]!.held!.until.getTime() - now;
      expect(until).toBeGreaterThan(15_000);
      expect(until).toBeLessThanOrEqual(17_000);
      await driver.settle(done(taken.find(({ lease }) => lease.id === 'b-1')!));
      expect((await held()).map(({ key }) => key)).toEqual(['c']);
      driver.clock.advance(until);
      expect((await held()).map(({ key }) => key)).toEqual([]);
    });

    it('are counted with the tasks that only run', async ({ driver }) => {
      const inspector = beFair(driver);
      await driver.enqueue([...tasksOf('a', 1, { concurrency: 3 }), ...tasksOf('b', 1, { weight: 5 })]);
      const taken = await driver.take(9);
      expect((await inspector.fairnessKeys('default')).keys).toEqual([
        { ...ALONE, key: 'a', waiting: 0, running: 1, concurrency: 3 },
        { ...ALONE, key: 'b', waiting: 0, running: 1, weight: 5 },
      ]);
      await driver.settle(...taken.map(done));
      expect((await inspector.fairnessKeys('default')).keys).toEqual([]);
    });

    it('are listed page by page, by most waiting or by name, and found by their text', async ({ driver }) => {
      const inspector = beFair(driver);
      const names = Array.from({ length: 300 }, (_, index) => `tenant-${index}`);
      await driver.enqueue(names.flatMap((name, index) => tasksOf(name, 1 + (index % 3))));
      const all = async (options: FairKeyListOptions): Promise<{ key: string; waiting: number }[]> => {
        const found: { key: string; waiting: number }[] = [];
        for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
          const page = await inspector.fairnessKeys('default', { ...options, size: 70, cursor });
          found.push(...page.keys);
          cursor = page.cursor;
        }
        return found;
      };
      expect((await all({ sort: 'name' })).map(({ key }) => key)).toEqual(names.toSorted());
      const most = await all({});
      expect(most.map(({ waiting }) => waiting)).toEqual([3, 2, 1].flatMap((count) => Array<number>(100).fill(count)));
      expect(most.map(({ key }) => key).toSorted()).toEqual(names.toSorted());
      expect((await all({ search: 'ant-29', sort: 'name' })).map(({ key }) => key)).toEqual(
        names.filter((name) => name.includes('ant-29')).toSorted(),
      );
    });

    it('are counted with their queue, and those that are held', async ({ driver }) => {
      const inspector = beFair(driver);
      await driver.enqueue([...tasksOf('a', 1), ...tasksOf('b', 3, { concurrency: 1 }), ...tasksOf('c', 2)]);
      expect((await inspector.getQueueInfo('default')).keys).toEqual({ waiting: 3, held: 0 });
      const taken = await driver.take(9);
      expect((await inspector.getQueueInfo('default')).keys).toEqual({ waiting: 1, held: 1 });
      await driver.settle(...taken.map(done));
      expect((await inspector.getQueueInfo('default')).keys).toEqual({ waiting: 1, held: 0 });
    });

    it('are none where no task has one', async ({ driver }) => {
      await driver.enqueue([request(), request()]);
      await driver.take(1);
      expect(await inspectorOf(driver).fairnessKeys('default')).toEqual({ keys: [], cursor: undefined });
    });

    it('refuse wrong options before anything is read', async ({ driver }) => {
      const inspector = beFair(driver);
      await driver.enqueue(tasksOf('a', 1));
      const refused: unknown[] = [
        { size: 0 },
        { size: 1_001 },
        { sort: 'age' },
        { held: 1 },
        { search: ' ' },
        { by: 1 },
      ];
      for (const options of refused) {
        await expect(inspector.fairnessKeys('default', options as FairKeyListOptions)).rejects.toThrow(
          InvalidOptionError,
        );
      }
      const { cursor } = await inspector.listTasks('default', 'pending', { size: 1 });
      await expect(inspector.fairnessKeys('default', { cursor: cursor ?? 'x' })).rejects.toThrow('not a cursor');
    });
  });

  describe('pending tasks of a fair queue', () => {
    it('are listed with those in lines, page by page', async ({ driver }) => {
      beFair(driver);
      const all = [
        ...tasksOf('a', 7),
        ...tasksOf('b', 3, { concurrency: 1 }),
        ...tasksOf('c', 1),
        ...Array.from({ length: 4 }, (_, index) => request({ id: `n-${index}` })),
      ];
      await driver.enqueue(all);
      const ids = all.map(({ message }) => message.id).toSorted();
      for (const size of [1, 2, 3, 4, 15, 16]) {
        const found = await allPending(driver, { size });
        expect(found.toSorted()).toEqual(ids);
        expect(found.filter((id) => id.startsWith('a'))).toEqual(all.slice(0, 7).map(({ message }) => message.id));
      }
      expect((await inspectorOf(driver).listTasks('default', 'pending')).tasks[0]).toMatchObject({ state: 'pending' });
    });

    it('are listed by page number, too', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 7), ...tasksOf('b', 5), request({ id: 'n-1' }), request({ id: 'n-2' })]);
      const found: string[] = [];
      for (let page = 1; page <= 5; page++) {
        const { tasks } = await inspectorOf(driver).listTasks('default', 'pending', { size: 3, page });
        found.push(...tasks.map(({ id }) => id));
      }
      expect(new Set(found).size).toBe(14);
    });

    it('are none left out while keys have their turns, are held, and new ones come', async ({ driver }) => {
      beFair(driver);
      const names = Array.from({ length: 160 }, (_, index) => `k${index}`);
      const stay = names.flatMap((name, index) =>
        tasksOf(name, 6, index % 2 === 0 ? { rate: 2, window: 160_000 } : {}),
      );
      await driver.enqueue(stay);
      let round = 0;
      const taken = new Set<string>();
      const found = await allPending(driver, { size: 40 }, async () => {
        round++;
        for (const { lease } of await driver.take(17)) taken.add(lease.id);
        await driver.enqueue(tasksOf(`new-${round}`, 1));
        driver.clock.advance(3_000);
      });
      const seen = new Set(found);
      expect(stay.map(({ message }) => message.id).filter((id) => !seen.has(id) && !taken.has(id))).toEqual([]);
    });

    it('are listed, searched, counted and deleted by key', async ({ driver }) => {
      const inspector = beFair(driver);
      await driver.enqueue([
        ...tasksOf('a', 5),
        ...tasksOf('b', 3, { concurrency: 1 }),
        request({ id: 'n-1' }),
        request({ id: 'n-2' }),
      ]);
      expect(await allPending(driver, { size: 2, fairnessKey: 'a' })).toEqual(['a-1', 'a-2', 'a-3', 'a-4', 'a-5']);
      expect(await allPending(driver, { size: 2, fairnessKey: '' })).toEqual(['n-1', 'n-2']);
      expect(await allPending(driver, { size: 2, fairnessKey: 'z' })).toEqual([]);
      const search = await inspector.searchTasks('default', 'pending', { fairnessKey: 'b', id: 'b-3' });
      expect(search.tasks.map(({ id }) => id)).toEqual(['b-3']);
      expect(await inspector.countTasks('default', 'pending', { fairnessKey: 'b' })).toBe(3);
      expect(await inspector.deleteAllTasks('default', 'pending', { fairnessKey: 'a' })).toEqual({
        moved: 5,
        skipped: 0,
      });
      expect(await inspector.archiveAllTasks('default', 'pending', { id: 'b-' })).toEqual({ moved: 3, skipped: 0 });
      expect(await inspector.getQueueInfo('default')).toMatchObject({ pending: 2, archived: 3 });
      await expect(inspector.listTasks('default', 'active', { fairnessKey: 'a' })).rejects.toThrow('pending tasks');
      await expect(inspector.listTasks('default', 'pending', { fairnessKey: 'a', page: 2 })).rejects.toThrow('cursor');
    });

    it('are found and changed one by one', async ({ driver }) => {
      const inspector = beFair(driver);
      await driver.enqueue(tasksOf('a', 5));
      expect(await inspector.getTaskInfo('default', 'a-2')).toMatchObject({ state: 'pending', queue: 'default' });
      await expect(inspector.runTask('default', 'a-1')).rejects.toThrow('already in pending state');
      await inspector.deleteTask('default', 'a-2', { state: 'pending' });
      await inspector.archiveTask('default', 'a-3');
      await inspector.rescheduleTask('default', 'a-4', '1h');
      await inspector.updateTaskPayload('default', 'a-5', { changed: true });
      await inspector.cancelProcessing('a-5');
      expect((await inspector.getTaskInfo('default', 'a-2'))?.state).toBeUndefined();
      expect((await inspector.getTaskInfo('default', 'a-3'))?.state).toBe('archived');
      expect((await inspector.getTaskInfo('default', 'a-4'))?.state).toBe('scheduled');
      expect(await inspector.getQueueInfo('default')).toMatchObject({ archived: 1, scheduled: 1, aggregating: 0 });
      expect(String((await driver.take(9)).at(-1)?.message.payload)).toBe('{"changed":true}');
    });
  });
}
