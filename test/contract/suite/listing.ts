import { describe, expect } from 'vitest';
import type { TaskLocation } from '../../../lib/broker/inspection.js';
import { InvalidOptionError } from '../../../lib/errors.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import { STORED_STATES } from '../../../lib/wire/states.js';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, archival, completion, done } from '../driver.js';

const sortedSetOf = (state: TaskLocation['state']): TaskLocation =>
  state === 'aggregating' ? { state, group: 'g' } : { state };

/** The ids of a page, and its cursor. */
async function page(
  driver: Driver,
  place: TaskLocation,
  size: number,
  cursor?: string,
): Promise<[string[], string | undefined]> {
  const { tasks, damaged, cursor: next } = await driver.broker.listing.listTasks('default', { ...place, size, cursor });
  expect(damaged).toEqual([]);
  return [tasks.map(({ message }) => message.id), next];
}

async function all(
  driver: Driver,
  place: TaskLocation,
  size: number,
  between?: () => Promise<unknown>,
): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const [found, next] = await page(driver, place, size, cursor);
    ids.push(...found);
    cursor = next;
    if (cursor !== undefined) await between?.();
  } while (cursor !== undefined);
  return ids;
}

const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

const addAll = (driver: Driver, ids: readonly string[] = IDS, processAt?: number): Promise<unknown> =>
  driver.enqueue(ids.map((id) => request({ id }, { processAt })));

export function exerciseListing(it: DriverTest): void {
  describe('listTasks', () => {
    it('returns a time beyond the range of Date as the last one of that range', async ({ driver }) => {
      const inspector = new AsynqInspector(driver.broker);
      await driver.add({ id: 'far' }, { processAt: Number.MAX_SAFE_INTEGER });
      await driver.add({ id: 'near' }, { processAt: driver.now + 1 });
      const { tasks } = await inspector.listTasks('default', 'scheduled');
      expect(tasks.map(({ id, nextProcessAt }) => [id, nextProcessAt?.getTime()])).toEqual([
        ['near', (driver.now + 1) * 1000],
        ['far', 8.64e15],
      ]);
      expect((await inspector.getTaskInfo('default', 'far'))?.nextProcessAt?.toISOString()).toMatch(/^\+275760-/);
      expect(await driver.broker.maintenance.forward('default')).toEqual({ moved: 0, nextDue: driver.now + 1 });
    });

    for (const state of STORED_STATES) {
      it(`lists a task that is ${state}, and nothing in other states`, async ({ driver }) => {
        const id = await driver.arrange(state);
        const due = state === 'scheduled' || state === 'retry' ? driver.now + 60 : undefined;
        const { tasks, damaged, cursor } = await driver.broker.listing.listTasks('default', {
          ...sortedSetOf(state),
          size: 5,
        });
        expect(tasks).toMatchObject([
          { state, nextProcessAt: due, orphaned: false, result: undefined, message: { id } },
        ]);
        expect([damaged, cursor]).toEqual([[], undefined]);
        for (const other of STORED_STATES.filter((one) => one !== state)) {
          expect(await page(driver, sortedSetOf(other), 5)).toEqual([[], undefined]);
        }
      });
    }

    it('returns results', async ({ driver }) => {
      const task = await driver.takeNew();
      const result = Buffer.from([0, 255]);
      await driver.settle(completion(task, driver.now + 60, result));
      expect((await driver.broker.listing.listTasks('default', { state: 'completed', size: 1 })).tasks).toMatchObject([
        { result },
      ]);
    });

    it('lists pending tasks as they will run, active ones as taken, others by time and id', async ({ driver }) => {
      await addAll(driver, ['b', 'a', 'c']);
      expect(await all(driver, { state: 'pending' }, 2)).toEqual(['b', 'a', 'c']);
      await driver.take(2);
      await driver.take(1);
      expect(await all(driver, { state: 'active' }, 2)).toEqual(['b', 'a', 'c']);
      await addAll(driver, ['z', 'y', 'ü', '🎉', '\uffee'], driver.now + 60);
      await addAll(driver, ['x'], driver.now + 61);
      await addAll(driver, ['w'], driver.now + 9);
      expect(await all(driver, { state: 'scheduled' }, 1)).toEqual(['w', 'y', 'z', 'ü', '\uffee', '🎉', 'x']);
    });

    it('returns since when a task is pending, and again from when it is put back', async ({ driver }) => {
      await addAll(driver, ['first']);
      const since = driver.clock.now();
      driver.clock.advance(90_500);
      await addAll(driver, ['second']);
      const list = async () =>
        (await driver.broker.listing.listTasks('default', { state: 'pending', size: 5 })).tasks.map(
          ({ message, pendingSince }) => [message.id, pendingSince],
        );
      expect(await list()).toEqual([
        ['first', since],
        ['second', since + 90_500],
      ]);
      expect(await driver.broker.inspection.getTask('default', 'first')).toMatchObject({ pendingSince: since });
      const task = await driver.takeOne();
      expect(await driver.broker.inspection.getTask('default', 'first')).toMatchObject({ pendingSince: undefined });
      await driver.settle({ kind: 'requeue', lease: task.lease });
      expect((await list())[0]).toEqual(['first', since + 90_500]);
    });

    it('marks the active tasks that no server holds any more', async ({ driver }) => {
      await driver.takeNew({ id: 'old' });
      driver.clock.advance(30_000);
      await driver.takeNew({ id: 'new' });
      const { tasks } = await driver.broker.listing.listTasks('default', { state: 'active', size: 5 });
      expect(tasks.map(({ message, orphaned }) => [message.id, orphaned])).toEqual([
        ['old', true],
        ['new', false],
      ]);
    });

    it('has the progress of active tasks, and nothing else that their handlers said', async ({ driver }) => {
      const task = await driver.takeNew({ id: 'a', retention: 60 });
      await driver.broker.notes.write(task.lease, { progress: '[1,0.5,"half"]', fresh: false, pieces: [] });
      await driver.takeNew({ id: 'b' });
      const list = async (state: 'active' | 'completed') =>
        (await driver.broker.listing.listTasks('default', { state, size: 5 })).tasks.map(({ notes }) => notes);
      const said = { progress: '[1,0.5,"half"]', log: [], logDropped: 0, chunks: [] };
      expect(await list('active')).toEqual([said, undefined]);
      await driver.settle(completion(task, driver.now + 60));
      expect(await list('completed')).toEqual([undefined]);
    });

    it('ends exactly at the end', async ({ driver }) => {
      await addAll(driver, IDS.slice(0, 4));
      await addAll(driver, ['p', 'q', 'r', 's'], driver.now + 60);
      for (const state of ['pending', 'scheduled'] as const) {
        const [first, cursor] = await page(driver, { state }, 2);
        expect(cursor).toBeDefined();
        const [second, end] = await page(driver, { state }, 2, cursor);
        expect([first.length, second.length, end]).toEqual([2, 2, undefined]);
      }
    });

    it('can skip entries instead of using a cursor', async ({ driver }) => {
      await addAll(driver);
      await addAll(driver, ['p', 'q', 'r'], driver.now + 60);
      const skipped = async (state: TaskLocation['state'], offset: number): Promise<(string | undefined)[]> => {
        const { tasks } = await driver.broker.listing.listTasks('default', { state, size: 2, offset });
        return tasks.map(({ message }) => message.id);
      };
      expect(await skipped('pending', 4)).toEqual(['e', 'f']);
      expect(await skipped('pending', 6)).toEqual(['g']);
      expect(await skipped('pending', 7)).toEqual([]);
      expect(await skipped('scheduled', 2)).toEqual(['r']);
      expect(await skipped('scheduled', 9)).toEqual([]);
    });

    it('rejects a cursor of another kind of list, and text that is no cursor', async ({ driver }) => {
      await addAll(driver);
      const [, cursor] = await page(driver, { state: 'pending' }, 2);
      await expect(page(driver, { state: 'retry' }, 2, cursor)).rejects.toThrow(InvalidOptionError);
      for (const bad of ['x', '', 'WyJsIiwtMV0']) {
        await expect(page(driver, { state: 'active' }, 2, bad)).rejects.toThrow(InvalidOptionError);
      }
    });
  });

  describe('a cursor', () => {
    it('continues where it was when tasks before it are taken and others are added', async ({ driver }) => {
      await addAll(driver);
      const seen = await all(driver, { state: 'pending' }, 2, async () => {
        await driver.take(2);
        await driver.add();
      });
      expect(seen.slice(0, 7)).toEqual(IDS);
      expect(new Set(seen).size).toBe(seen.length);
    });

    it('continues at the front when everything before it was taken, and more', async ({ driver }) => {
      await addAll(driver);
      const [, cursor] = await page(driver, { state: 'pending' }, 2);
      await driver.take(4);
      expect(await page(driver, { state: 'pending' }, 2, cursor)).toEqual([['e', 'f'], expect.any(String)]);
    });

    it('continues after the previous page when a whole page was removed from the middle', async ({ driver }) => {
      const { broker } = driver;
      await addAll(driver, ['1', '2', ...IDS]);
      await driver.take(9);
      const tasks = (await broker.listing.listTasks('default', { state: 'active', size: 9 })).tasks;
      expect(tasks.map(({ message }) => message.id)).toEqual(['1', '2', ...IDS]);
      const [, first] = await page(driver, { state: 'active' }, 2);
      const [second, cursor] = await page(driver, { state: 'active' }, 2, first);
      expect(second).toEqual(['a', 'b']);
      const { tasks: held } = await broker.maintenance.listExpiredLeases('default', driver.now + 30, 9);
      await driver.settle(...held.filter(({ lease }) => second.includes(lease.id)).map(done));
      expect(await page(driver, { state: 'active' }, 2, cursor)).toEqual([['c', 'd'], expect.any(String)]);
    });

    it('is not changed by a task that was put back at the front', async ({ driver }) => {
      await addAll(driver);
      const [, cursor] = await page(driver, { state: 'pending' }, 3);
      const task = await driver.takeOne();
      await driver.settle({ kind: 'requeue', lease: task.lease });
      expect((await page(driver, { state: 'pending' }, 9, cursor))[0]).toEqual(['d', 'e', 'f', 'g']);
    });

    it('continues after the last entry of a sorted list, also when that entry is gone', async ({ driver }) => {
      await addAll(driver, IDS, driver.now + 10);
      await addAll(driver, ['later'], driver.now + 20);
      const [first, cursor] = await page(driver, { state: 'scheduled' }, 3);
      expect(first).toEqual(['a', 'b', 'c']);
      await addAll(driver, ['aa'], driver.now + 10);
      await addAll(driver, ['earlier'], driver.now + 9);
      const rest = ['d', 'e', 'f', 'g', 'later'];
      expect((await page(driver, { state: 'scheduled' }, 9, cursor))[0]).toEqual(rest);
      driver.clock.advance(10_000);
      await driver.broker.maintenance.forward('default');
      expect(await page(driver, { state: 'scheduled' }, 9, cursor)).toEqual([['later'], undefined]);
    });

    it('misses nothing while the archive grows after it', async ({ driver }) => {
      await addAll(driver);
      await driver.settle(...(await driver.take(7)).map(archival));
      const seen = await all(driver, { state: 'archived' }, 2, async () => {
        driver.clock.advance(1000);
        if (driver.now % 3 === 0) await driver.settle(archival(await driver.takeNew()));
      });
      expect(seen.slice(0, 7)).toEqual(IDS);
    });
  });

  describe('from the other end', () => {
    const backwards = async (
      driver: Driver,
      state: TaskLocation['state'],
      size: number,
      cursor?: string,
      offset?: number,
    ) => {
      const request = { state, size, cursor, offset, reverse: true };
      const { tasks, cursor: next } = await driver.broker.listing.listTasks('default', request);
      return [tasks.map(({ message }) => message.id), next] as const;
    };

    it('lists the latest time first, and equal times by id, backwards', async ({ driver }) => {
      await addAll(driver, ['z', 'y', 'ü', '🎉', '\uffee'], driver.now + 60);
      await addAll(driver, ['x'], driver.now + 61);
      await addAll(driver, ['w'], driver.now + 9);
      const expected = ['x', '🎉', '\uffee', 'ü', 'z', 'y', 'w'];
      for (const size of [1, 2, 3, 7, 9]) {
        const seen: string[] = [];
        for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
          const [ids, next] = await backwards(driver, 'scheduled', size, cursor);
          seen.push(...ids);
          cursor = next;
        }
        expect([size, seen]).toEqual([size, expected]);
      }
      expect((await backwards(driver, 'scheduled', 2, undefined, 4))[0]).toEqual(['z', 'y']);
      expect(await backwards(driver, 'scheduled', 2, undefined, 9)).toEqual([[], undefined]);
      const { ids } = await driver.broker.listing.listIds('default', { state: 'scheduled', size: 9, reverse: true });
      expect(ids).toEqual(expected);
    });

    it('continues after the last entry, also when that is gone or others come before it', async ({ driver }) => {
      await addAll(driver, IDS, driver.now + 10);
      await addAll(driver, ['earlier'], driver.now + 5);
      const [first, cursor] = await backwards(driver, 'scheduled', 3);
      expect(first).toEqual(['g', 'f', 'e']);
      await addAll(driver, ['h', 'ff'], driver.now + 10);
      await addAll(driver, ['later'], driver.now + 20);
      await driver.broker.administration.moveTasks('default', 'delete', ['e', 'c']);
      expect((await backwards(driver, 'scheduled', 9, cursor))[0]).toEqual(['d', 'b', 'a', 'earlier']);
      await driver.broker.administration.moveTasks('default', 'delete', ['a', 'b', 'd', 'earlier']);
      expect(await backwards(driver, 'scheduled', 9, cursor)).toEqual([[], undefined]);
    });

    it('misses nothing while the archive grows at one end and shrinks at the other', async ({ driver }) => {
      await addAll(driver);
      for (const task of await driver.take(7)) {
        driver.clock.advance(1000);
        await driver.settle(archival(task));
      }
      const seen: string[] = [];
      for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
        const [ids, next] = await backwards(driver, 'archived', 2, cursor);
        seen.push(...ids);
        cursor = next;
        driver.clock.advance(1000);
        await driver.settle(archival(await driver.takeNew()));
        await driver.broker.administration.moveTasks('default', 'run', ids);
        await driver.take(9);
      }
      expect(seen).toEqual(IDS.toReversed());
    });

    it('continues in the direction of its cursor, and refuses the other one', async ({ driver }) => {
      await addAll(driver, IDS, driver.now + 10);
      const [, backward] = await backwards(driver, 'scheduled', 2);
      const [, forward] = await page(driver, { state: 'scheduled' }, 2);
      expect((await page(driver, { state: 'scheduled' }, 2, backward))[0]).toEqual(['e', 'd']);
      await expect(backwards(driver, 'scheduled', 2, forward)).rejects.toThrow(InvalidOptionError);
      const turned = { state: 'scheduled', size: 2, cursor: backward, reverse: false } as const;
      await expect(driver.broker.listing.listTasks('default', turned)).rejects.toThrow('other direction');
    });

    it('is refused for lists whose order only Redis knows', async ({ driver }) => {
      await addAll(driver);
      for (const state of ['pending', 'active'] as const)
        await expect(backwards(driver, state, 2)).rejects.toThrow(InvalidOptionError);
    });
  });

  describe('listIds', () => {
    it('lists the same in the same order, with the same cursors', async ({ driver }) => {
      await addAll(driver);
      await driver.take(3);
      await addAll(driver, ['p', 'q', 'r'], driver.now + 60);
      for (const state of ['pending', 'active', 'scheduled'] as const) {
        const { ids, cursor } = await driver.broker.listing.listIds('default', { state, size: 2 });
        expect([ids, cursor]).toEqual(await page(driver, { state }, 2));
        const rest = await driver.broker.listing.listIds('default', { state, size: 9, cursor });
        expect([rest.ids, rest.cursor]).toEqual(await page(driver, { state }, 9, cursor));
      }
    });
  });
}
