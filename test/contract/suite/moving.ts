import { describe, expect } from 'vitest';
import type { MoveStatus, TaskLocation, MoveAction } from '../../../lib/broker/inspection.js';
import { STORED_STATES, type TaskState } from '../../../lib/wire/states.js';
import { message, request } from '../../support/messages.js';
import { type Driver, type DriverTest, archival, expectQueue, expectUnchanged } from '../driver.js';

const LOCK = 'asynq:{default}:unique:t:x';

/** What each action returns for a task in each state. */
const STATUSES: Readonly<Record<MoveAction, Partial<Record<TaskState, MoveStatus>>>> = {
  run: { active: 'active', pending: 'same' },
  archive: { active: 'active', archived: 'same' },
  delete: { active: 'active' },
};

const RESULTS: Readonly<Record<MoveAction, TaskState | undefined>> = {
  run: 'pending',
  archive: 'archived',
  delete: undefined,
};

const claim = (driver: Driver) =>
  driver.broker.groups.claimDueSets('default', () => ({ gracePeriod: 0, maxDelay: 0, maxSize: 0 }), 1);

export function exerciseMoving(it: DriverTest): void {
  const move = (driver: Driver, action: MoveAction, ids: string[], from?: TaskLocation): Promise<MoveStatus[]> =>
    driver.broker.administration.moveTasks('default', action, ids, from);

  describe('moveTasks', () => {
    for (const action of ['run', 'archive', 'delete'] as const) {
      for (const state of STORED_STATES) {
        const status = STATUSES[action][state] ?? 'moved';
        it(`${action}: a task that is ${state} is ${status}`, async ({ driver }) => {
          const id = await driver.arrange(state);
          const act = async (): Promise<void> => expect(await move(driver, action, [id])).toEqual([status]);
          if (status !== 'moved') return expectUnchanged(driver, act);
          await act();
          expect(await driver.stateOf(id)).toBe(RESULTS[action]);
          const queue = await driver.queue();
          expect(queue.pending).toEqual(action === 'run' ? [id] : []);
          expect(queue.archived).toEqual(action === 'archive' ? [[id, driver.now]] : []);
          const { lease, scheduled, retry, completed, groups, groupNames } = queue;
          expect({ lease, scheduled, retry, completed, groups, groupNames }).toEqual({
            lease: [],
            scheduled: [],
            retry: [],
            completed: [],
            groups: {},
            groupNames: [],
          });
        });
      }

      it(`${action}: reports tasks that do not exist as missing`, async ({ driver }) => {
        await driver.add({ id: 'a' });
        await expectUnchanged(driver, async () => expect(await move(driver, action, ['b'])).toEqual(['missing']));
      });

      it(`${action}: does not touch tasks of a claimed set`, async ({ driver }) => {
        await driver.add({ id: 'a', groupKey: 'g' });
        await claim(driver);
        await expectUnchanged(driver, async () => {
          expect(await move(driver, action, ['a'])).toEqual(['claimed']);
          expect(await move(driver, action, ['a'], { state: 'aggregating', group: 'g' })).toEqual(['claimed']);
        });
      });
    }

    it('moves only tasks that are where the caller saw them', async ({ driver }) => {
      await driver.add({ id: 'p' });
      await driver.add({ id: 's' }, { processAt: driver.now + 9 });
      await driver.add({ id: 'g', groupKey: 'g' });
      await driver.add({ id: 'h', groupKey: 'h' });
      const ids = ['s', 'p', 'g', 'h', 'x'];
      const away = ['elsewhere', 'elsewhere', 'elsewhere'];
      expect(await move(driver, 'archive', ids, { state: 'scheduled' })).toEqual(['moved', ...away, 'missing']);
      expect(await move(driver, 'archive', ids, { state: 'aggregating', group: 'h' })).toEqual([
        ...away,
        'moved',
        'missing',
      ]);
      expect(await move(driver, 'delete', ids, { state: 'pending' })).toEqual([
        'elsewhere',
        'moved',
        'elsewhere',
        'elsewhere',
        'missing',
      ]);
      await expectQueue(driver, { groupNames: ['g'], scheduled: [], pending: [] });
    });

    it('puts tasks to run at the end of pending, in the given order, and restarts their wait', async ({ driver }) => {
      await driver.add({ id: 'a' });
      for (const id of ['c', 'b', 'd']) await driver.add({ id }, { processAt: driver.now + 9 });
      driver.clock.advance(2000);
      await move(driver, 'run', ['c', 'd', 'b']);
      const { pending, tasks } = await driver.queue();
      expect(pending).toEqual(['a', 'c', 'd', 'b']);
      expect(tasks['b']?.pendingSince).toBe(driver.clock.now());
      expect((await driver.take(9)).map(({ lease }) => lease.id)).toEqual(['a', 'c', 'd', 'b']);
    });

    it('wakes servers that wait for tasks', async ({ driver }) => {
      const id = await driver.arrange('archived');
      const woken: string[] = [];
      const listener = { onPending: (queue: string) => woken.push(queue), onDelayed: () => 0, onLost: () => undefined };
      const source = driver.broker.wake.watch(listener);
      await source.armPending(['default']);
      await move(driver, 'run', [id]);
      await expect.poll(() => woken).toEqual(['default']);
      await source.close();
    });

    it('releases the lock of a deleted task that still holds it, not of an archived one', async ({ driver }) => {
      await driver.add({ id: 'a', uniqueKey: LOCK }, { uniqueTtl: 60 });
      await move(driver, 'archive', ['a']);
      expect((await driver.queue()).locks[LOCK]?.owner).toBe('a');
      await driver.world.expireLock('default', LOCK);
      await driver.add({ id: 'b', uniqueKey: LOCK }, { uniqueTtl: 60 });
      await move(driver, 'delete', ['a']);
      expect((await driver.queue()).locks[LOCK]?.owner).toBe('b');
      await move(driver, 'delete', ['b']);
      await expectQueue(driver, { locks: {}, tasks: {} });
    });

    it("releases the locks of a group's tasks", async ({ driver }) => {
      await driver.add({ id: 'a', uniqueKey: LOCK, groupKey: 'g' }, { uniqueTtl: 60 });
      await move(driver, 'delete', ['a'], { state: 'aggregating', group: 'g' });
      await expectQueue(driver, { locks: {}, tasks: {}, groupNames: [] });
    });

    it('keeps the newest 9,999 of the archive, and deletes the others completely', async ({ driver }) => {
      const ids = Array.from({ length: 10_050 }, (_, index) => `t${String(index).padStart(5, '0')}`);
      await driver.enqueue(ids.map((id) => request({ id })));
      for (let first = 0; first < ids.length; first += 5_000) {
        expect(new Set(await move(driver, 'archive', ids.slice(first, first + 5_000)))).toEqual(new Set(['moved']));
        driver.clock.advance(1000);
      }
      const { archived, tasks } = await driver.queue();
      expect(archived.map(([id]) => id)).toEqual(ids.slice(51));
      expect(Object.keys(tasks).sort()).toEqual(ids.slice(51));
    });

    it('counts nothing', async ({ driver }) => {
      await move(driver, 'archive', [await driver.add()]);
      await move(driver, 'delete', [await driver.add()]);
      await expectQueue(driver, { processed: 0, failed: 0, processedOn: {}, failedOn: {} });
    });

    it('does not change the failures of a task', async ({ driver }) => {
      const task = await driver.takeNew({ maxRetry: 0, retried: 3, errorMsg: 'why', lastFailedAt: 5 });
      await driver.settle(archival(task));
      await move(driver, 'run', [task.lease.id]);
      expect((await driver.takeOne()).message).toEqual(task.message);
    });
  });

  describe('rescheduleTasks', () => {
    const reschedule = (driver: Driver, ids: string[], at: number, from?: TaskLocation): Promise<MoveStatus[]> =>
      driver.broker.administration.rescheduleTasks('default', ids, at, from);

    for (const state of STORED_STATES.filter((one) => one !== 'active')) {
      it(`moves a task that is ${state} to another time, at which it runs once`, async ({ driver }) => {
        const id = await driver.arrange(state);
        const at = driver.now + 7;
        const target = state === 'retry' ? 'retry' : 'scheduled';
        expect(await reschedule(driver, [id], at)).toEqual(['moved']);
        const queue = await driver.queue();
        const { pending, archived, completed, groups, groupNames } = queue;
        expect({ pending, archived, completed, groups, groupNames }).toEqual({
          pending: [],
          archived: [],
          completed: [],
          groups: {},
          groupNames: [],
        });
        expect([queue.scheduled, queue.retry]).toEqual(target === 'retry' ? [[], [[id, at]]] : [[[id, at]], []]);
        expect(queue.tasks[id]).toMatchObject({ state: target, pendingSince: undefined });
        driver.clock.advance(6_000);
        expect(await driver.broker.maintenance.forward('default')).toMatchObject({ moved: 0, nextDue: at });
        driver.clock.advance(1_000);
        expect((await driver.broker.maintenance.forward('default')).moved).toBe(1);
        expect(await driver.stateOf(id)).toBe(state === 'aggregating' ? 'aggregating' : 'pending');
      });
    }

    it('accepts earlier times, too; a time in the past is due at once', async ({ driver }) => {
      await driver.add({ id: 'a' }, { processAt: driver.now + 900 });
      await driver.add({ id: 'b' }, { processAt: driver.now + 900 });
      expect(await reschedule(driver, ['a', 'b', 'x'], 0)).toEqual(['moved', 'moved', 'missing']);
      expect((await driver.broker.maintenance.forward('default')).moved).toBe(2);
      expect((await driver.take(9)).map(({ lease }) => lease.id)).toEqual(['a', 'b']);
    });

    it('does not touch active tasks, tasks of a claimed set, and tasks that have moved', async ({ driver }) => {
      const active = await driver.arrange('active');
      await driver.add({ id: 'g', groupKey: 'g' });
      await claim(driver);
      await driver.add({ id: 'p' });
      await expectUnchanged(driver, async () => {
        expect(await reschedule(driver, [active, 'g', 'x'], driver.now + 9)).toEqual(['active', 'claimed', 'missing']);
        expect(await reschedule(driver, ['p'], driver.now + 9, { state: 'scheduled' })).toEqual(['elsewhere']);
      });
    });

    it('extends the lock of a unique task by its delay, and never shortens it', async ({ driver }) => {
      /** Locks in Redis expire in real time: what is left of so many milliseconds. */
      const expectWithin = (expiresIn: number, most: number): void => {
        expect(expiresIn).toBeLessThanOrEqual(most);
        expect(expiresIn).toBeGreaterThan(most - 30_000);
      };
      await driver.add({ id: 'a', uniqueKey: LOCK }, { processAt: driver.now + 10, uniqueTtl: 60 });
      const before = (await driver.queue()).locks[LOCK]!.expiresIn;
      await reschedule(driver, ['a'], driver.now + 110);
      const longer = (await driver.queue()).locks[LOCK]!.expiresIn;
      expectWithin(longer, before + 100_000);
      await reschedule(driver, ['a'], driver.now + 10);
      expectWithin((await driver.queue()).locks[LOCK]!.expiresIn, longer);
      await driver.world.expireLock('default', LOCK);
      await driver.add({ id: 'b', uniqueKey: LOCK }, { uniqueTtl: 60 });
      await reschedule(driver, ['a'], driver.now + 900);
      const { owner, expiresIn } = (await driver.queue()).locks[LOCK]!;
      expect(owner).toBe('b');
      expectWithin(expiresIn, 60_000);
    });

    it('removes a task from its group until that time, when it joins again', async ({ driver }) => {
      await driver.add({ id: 'a', groupKey: 'g' });
      await driver.add({ id: 'b', groupKey: 'g' });
      expect(await reschedule(driver, ['a'], driver.now + 5, { state: 'aggregating', group: 'g' })).toEqual(['moved']);
      await expectQueue(driver, { groups: { g: [['b', driver.now]] }, scheduled: [['a', driver.now + 5]] });
      await driver.broker.administration.moveTasks('default', 'delete', ['b']);
      await expectQueue(driver, { groupNames: [] });
      driver.clock.advance(5_000);
      await driver.broker.maintenance.forward('default');
      await expectQueue(driver, { groups: { g: [['a', driver.now]] }, groupNames: ['g'], scheduled: [] });
    });

    it('takes a task off the waitlist of a limit', async ({ driver }) => {
      const { lease } = await driver.takeNew({});
      await driver.settle({ kind: 'wait', lease, waitlist: 'l' });
      expect(await reschedule(driver, [lease.id], driver.now + 500)).toEqual(['moved']);
      expect(await driver.broker.limiting.wakeWaiting('default', 'l', 5)).toEqual({ woken: 0, left: 0 });
      await expectQueue(driver, { scheduled: [[lease.id, driver.now + 500]], retry: [], pending: [] });
    });
  });

  describe('updatePayload', () => {
    it('replaces the payload of a scheduled task, and changes nothing else', async ({ driver }) => {
      const before = message({ uniqueKey: LOCK, headers: { k: 'v' }, deadline: 9 });
      await driver.enqueue([{ message: before, processAt: driver.now + 9, uniqueTtl: 60 }]);
      const payload = Buffer.from([0, 255]);
      expect(await driver.broker.administration.updatePayload('default', before.id, payload)).toBe('updated');
      const { tasks, scheduled, locks } = await driver.queue();
      expect(tasks[before.id]).toMatchObject({ message: { ...before, payload }, state: 'scheduled', uniqueKey: LOCK });
      expect([scheduled, Object.keys(locks)]).toEqual([[[before.id, driver.now + 9]], [LOCK]]);
    });

    for (const state of ['pending', 'retry', 'archived'] as const) {
      it(`works for a task that is ${state}, too, and does not move it`, async ({ driver }) => {
        const id = await driver.arrange(state);
        const { tasks, ...rest } = await driver.queue();
        expect(await driver.broker.administration.updatePayload('default', id, Buffer.from('new'))).toBe('updated');
        const { tasks: now, ...same } = await driver.queue();
        expect(same).toEqual(rest);
        const message = { ...tasks[id]!.message, payload: Buffer.from('new') };
        expect(now[id]).toEqual({ ...tasks[id], message });
      });
    }

    for (const state of ['active', 'completed', 'aggregating'] as const) {
      it(`refuses a task that is ${state}`, async ({ driver }) => {
        const id = await driver.arrange(state);
        await expectUnchanged(driver, async () =>
          expect(await driver.broker.administration.updatePayload('default', id, Buffer.alloc(1))).toBe('notEditable'),
        );
      });
    }

    it('replaces only the payload that the caller has seen, when the caller names it', async ({ driver }) => {
      const { broker } = driver;
      const id = await driver.add({ payload: Buffer.from([0, 255, 1]) });
      const seen = Buffer.from([0, 255, 1]);
      await expectUnchanged(driver, async () => {
        for (const other of [Buffer.alloc(0), Buffer.from([0, 255]), Buffer.from([0, 255, 2])])
          expect(await broker.administration.updatePayload('default', id, Buffer.from('new'), other)).toBe('different');
      });
      expect(await broker.administration.updatePayload('default', id, Buffer.from('new'), seen)).toBe('updated');
      expect(await broker.administration.updatePayload('default', id, Buffer.from('newer'), seen)).toBe('different');
      expect((await broker.inspection.getTask('default', id))!.message.payload.toString()).toBe('new');
      await driver.take();
      expect(await broker.administration.updatePayload('default', id, Buffer.from('newer'), seen)).toBe('notEditable');
      expect(await broker.administration.updatePayload('default', 'x', Buffer.from('newer'), seen)).toBe('missing');
    });

    it('reports a task that does not exist as missing', async ({ driver }) => {
      expect(await driver.broker.administration.updatePayload('default', 'x', Buffer.alloc(1))).toBe('missing');
    });
  });
}
