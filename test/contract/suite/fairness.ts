import { describe, expect } from 'vitest';
import type { LeasedTask, Settlement } from '../../../lib/broker/broker.js';
import type { FairShare } from '../../../lib/wire/fairness.js';
import { fairHeader, request } from '../../support/messages.js';
import { type Driver, type DriverTest, done, requeueing } from '../driver.js';

const ids = (tasks: readonly LeasedTask[]): string[] => tasks.map(({ lease }) => lease.id);
const keys = (tasks: readonly LeasedTask[]): string =>
  ids(tasks)
    .map((id) => id.split('-')[0])
    .sort()
    .join('');

/** Tasks `a-1`, `a-2` … of the key `a`. */
const tasksOf = (key: string, count: number, share: Partial<FairShare> = {}, first = 1) =>
  Array.from({ length: count }, (_, index) =>
    request({ id: `${key}-${first + index}`, headers: fairHeader(key, share) }),
  );

/** The claimed tasks may start 10 ms later. */
const claim = ({ broker }: Driver, settle: Settlement[]) =>
  broker.consumer.exchange('default', { settle, take: 20, allowance: 10 });

const beFair = ({ broker }: Driver) => broker.fairQueues.add('default');

export function exerciseFairness(it: DriverTest): void {
  describe('a fair queue', () => {
    it('takes tasks turn by turn, each key in its order', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue(tasksOf('a', 6));
      await driver.enqueue(tasksOf('b', 2));
      await driver.enqueue(tasksOf('c', 1));
      const order: string[] = [];
      for (let i = 0; i < 9; i++) order.push(...ids(await driver.take(1)));
      expect(order.slice(0, 6).sort()).toEqual(['a-1', 'a-2', 'a-3', 'b-1', 'b-2', 'c-1'].sort());
      expect(order.filter((id) => id.startsWith('a'))).toEqual(['a-1', 'a-2', 'a-3', 'a-4', 'a-5', 'a-6']);
      expect(await driver.take(1)).toEqual([]);
    });

    it('has a task that a signal wakes take the turn of its key', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 4), ...tasksOf('b', 1)]);
      const taken = await driver.take(5);
      const b = taken.find(({ lease }) => lease.id === 'b-1')!;
      const awaits = [{ signal: 'go', n: 1 }];
      await driver.settle({ kind: 'sleep', lease: b.lease, wakeAt: driver.now + 600, awaits });
      await driver.enqueue(tasksOf('a', 4, {}, 5));
      expect(await driver.broker.checkpoints.signal('default', 'b-1', 'go', Buffer.alloc(0))).toBe('stored');
      expect(keys(await driver.take(3))).toBe('aab'); // though three of the other key came before
      expect(keys(await driver.take(9))).toBe('aa');
      const { scheduled, pending } = await driver.queue();
      expect([scheduled, pending]).toEqual([[], []]);
    });

    /** A task of the key b that sleeps until a signal comes; nothing else is there. */
    const fallAsleep = async (driver: Driver): Promise<void> => {
      beFair(driver);
      await driver.enqueue(tasksOf('b', 1));
      const [b] = await driver.take(2);
      const awaits = [{ signal: 'go', n: 1 }];
      await driver.settle({ kind: 'sleep', lease: b!.lease, wakeAt: driver.now + 600, awaits });
      expect(await driver.take(1)).toEqual([]);
    };
    const wake = async ({ broker, clock }: Driver): Promise<void> => {
      expect(await broker.checkpoints.signal('default', 'b-1', 'go', Buffer.alloc(0))).toBe('stored');
      clock.advance(1);
    };
    const takeOneByOne = async (driver: Driver, count: number): Promise<string[]> => {
      const order: string[] = [];
      for (let i = 0; i < count; i++) order.push(...ids(await driver.take(1)));
      return order;
    };

    it('has a task that a signal wakes come before those that come to its key later', async ({ driver }) => {
      await fallAsleep(driver);
      await driver.enqueue(tasksOf('b', 1, {}, 2));
      driver.clock.advance(1);
      await wake(driver);
      await driver.enqueue(tasksOf('b', 2, {}, 3));
      expect(await takeOneByOne(driver, 5)).toEqual(['b-2', 'b-1', 'b-3', 'b-4']);
    });

    it('has a task that a signal wakes come before keys that come later', async ({ driver }) => {
      await fallAsleep(driver);
      await wake(driver);
      await driver.enqueue(tasksOf('a', 2));
      expect(await takeOneByOne(driver, 4)).toEqual(['b-1', 'a-1', 'a-2']);
    });

    it('has due tasks come in their order, before those that come to their key later', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue(tasksOf('b', 1, {}, 4).map(({ message }) => ({ message, processAt: driver.now + 4 })));
      await driver.enqueue(tasksOf('b', 2, {}, 5).map(({ message }) => ({ message, processAt: driver.now + 5 })));
      driver.clock.advance(6_000);
      await driver.broker.maintenance.forward('default');
      driver.clock.advance(1);
      await driver.enqueue(tasksOf('b', 3));
      expect(await takeOneByOne(driver, 7)).toEqual(['b-4', 'b-5', 'b-6', 'b-1', 'b-2', 'b-3']);
    });

    it('has tasks without a key come before keys that come later', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([request({ id: 'n-1' }), request({ id: 'n-2' })]);
      driver.clock.advance(1);
      await driver.enqueue(tasksOf('b', 2));
      expect(await takeOneByOne(driver, 5)).toEqual(['n-1', 'n-2', 'b-1', 'b-2']);
    });

    it('gives the same shares to a call that takes many', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 50), ...tasksOf('b', 50), ...tasksOf('c', 2)]);
      const taken = await driver.take(22);
      const count = (key: string) => ids(taken).filter((id) => id.startsWith(key)).length;
      expect([count('c'), count('a') + count('b')]).toEqual([2, 20]);
      expect(Math.abs(count('a') - count('b'))).toBeLessThanOrEqual(2);
    });

    it('gives a key of weight 3 three turns for each of another', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 40, { weight: 3 }), ...tasksOf('b', 40)]);
      const taken: string[] = [];
      for (let i = 0; i < 10; i++) taken.push(...ids(await driver.take(4)));
      const heavy = taken.filter((id) => id.startsWith('a')).length;
      expect(heavy).toBeGreaterThanOrEqual(29);
      expect(heavy).toBeLessThanOrEqual(31);
    });

    it('lets a key gain nothing by coming again and again', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 20), ...tasksOf('b', 20)]);
      const taken: string[] = [];
      for (let i = 0; i < 20; i++) {
        await driver.enqueue(tasksOf('z', 1, {}, i));
        taken.push(...ids(await driver.take(1)));
      }
      expect(taken.filter((id) => id.startsWith('z')).length).toBeLessThanOrEqual(8);
    });

    it('counts tasks without a key, and those that were there before, as one key', async ({ driver }) => {
      await driver.enqueue([
        request({ id: 'n-1' }),
        request({ id: 'n-2' }),
        request({ id: 'n-3' }),
        ...tasksOf('a', 3),
      ]);
      beFair(driver);
      await driver.enqueue(tasksOf('b', 3));
      const first = keys(await driver.take(6));
      expect(new Set(first)).toEqual(new Set('abn'));
      expect(first).not.toMatch(/(.)\1\1\1/);
      expect([...first, ...keys(await driver.take(6))].sort().join('')).toBe('aaabbbnnn');
    });

    it('puts a task that comes back into the line of its key', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 3)]);
      const [first] = await driver.take(1);
      await driver.enqueue(tasksOf('b', 3));
      await driver.settle(requeueing(first!));
      const order: string[] = [];
      for (let i = 0; i < 6; i++) order.push(...ids(await driver.take(1)));
      expect(order.filter((id) => id.startsWith('a'))).toEqual(['a-1', 'a-2', 'a-3']);
    });

    it('moves due tasks into the line of their key', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue(tasksOf('a', 3).map(({ message }) => ({ message, processAt: driver.now + 5 })));
      driver.clock.advance(6_000);
      await driver.broker.maintenance.forward('default');
      await driver.enqueue(tasksOf('b', 3));
      expect(keys(await driver.take(4))).toMatch(/^(aaab|aabb|abbb)$/);
      expect(await driver.take(4)).toHaveLength(2);
    });

    it('takes nothing while it is paused', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue(tasksOf('a', 2));
      await driver.broker.administration.pauseQueue('default');
      expect((await driver.exchange([], 2)).tasks).toEqual([]);
      await driver.broker.administration.resumeQueue('default');
      expect(keys(await driver.take(2))).toBe('aa');
    });

    it('keeps the concurrency of a key, and says when to look again', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 5, { concurrency: 2 }), ...tasksOf('b', 3)]);
      const first = await driver.exchange([], 10);
      expect(keys(first.tasks)).toBe('aabbb');
      expect(first.opensIn).toBe(2_000);
      expect((await driver.exchange([], 10)).tasks).toEqual([]);
      const ended = first.tasks.find(({ lease }) => lease.id === 'a-1')!;
      const second = await driver.exchange([done(ended)], 10);
      expect(ids(second.tasks)).toEqual(['a-3']);
    });

    it('gives no slot of a key twice in one call', async ({ driver }) => {
      beFair(driver);
      const limited = tasksOf('c', 2, { concurrency: 1 });
      await driver.enqueue([
        ...tasksOf('a', 1),
        ...limited,
        ...tasksOf('b', 1, { weight: 2.5 }),
        ...tasksOf('a', 1, {}, 2),
      ]);
      expect(keys(await driver.take(5))).toBe('aabc');
    });

    it('keeps slots and order of large tasks, which one call does not take together', async ({ driver }) => {
      beFair(driver);
      const payload = Buffer.alloc(400_000);
      const large = tasksOf('a', 6, { concurrency: 4, rate: 5, window: 60_000 });
      await driver.enqueue(large.map(({ message }) => ({ message: { ...message, payload } })));
      const taken: LeasedTask[] = [];
      for (let call = 0; call < 5; call++) taken.push(...(await driver.take(9)));
      expect(ids(taken)).toEqual(['a-1', 'a-2', 'a-3', 'a-4']);
      const next = await driver.exchange(taken.map(done), 9);
      expect(ids([...next.tasks, ...(await driver.take(9))])).toEqual(['a-5']);
    });

    it('counts the starts of large tasks, which one call does not take together, when they are taken', async ({
      driver,
    }) => {
      beFair(driver);
      const payload = Buffer.alloc(400_000);
      const large = [...tasksOf('a', 20, { rate: 5, window: 1_600 }), ...tasksOf('b', 4, { concurrency: 4 })];
      await driver.enqueue(large.map(({ message }) => ({ message: { ...message, payload } })));
      await claim(driver, []); // the server has no slots for more
      driver.clock.advance(1_700);
      const taken: LeasedTask[] = [];
      for (let call = 0; call < 20; call++) taken.push(...(await claim(driver, [])).tasks);
      expect(keys(taken).replaceAll('b', '')).toBe('aaaaa');
      const order = ids(taken).filter((id) => id.startsWith('a'));
      expect(order).toEqual(order.toSorted((one, other) => Number(one.slice(2)) - Number(other.slice(2))));
    });

    it('takes large tasks of a short line one after the other, with the limits of their key, and counts them', async ({
      driver,
    }) => {
      beFair(driver);
      const payload = Buffer.alloc(700_000);
      const large = tasksOf('a', 4, { concurrency: 3, rate: 3, window: 1_600 });
      await driver.enqueue(large.map(({ message }) => ({ message: { ...message, payload } })));
      const taken: LeasedTask[] = [];
      for (let call = 0; call < 6; call++) taken.push(...(await claim(driver, [])).tasks);
      expect(ids(taken)).toEqual(['a-1', 'a-2', 'a-3']);
      expect(await driver.broker.inspection.describeQueue('default')).toMatchObject({ pending: 1, active: 3 });
      driver.clock.advance(1_700);
      const last = await claim(driver, taken.map(done));
      expect(ids(last.tasks)).toEqual(['a-4']);
      const end = await claim(driver, last.tasks.map(done));
      expect(end).toMatchObject({ tasks: [], backlog: 0, opensIn: 0 });
    });

    it('frees the slots of a key when a dead server is recovered', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue(tasksOf('a', 3, { concurrency: 1 }));
      expect(ids(await driver.take(3))).toEqual(['a-1']);
      driver.clock.advance(20_000);
      expect(await driver.take(3)).toEqual([]);
      driver.clock.advance(45_000);
      const { tasks } = await driver.broker.maintenance.listExpiredLeases('default', driver.now - 30, 10);
      expect(ids(tasks)).toEqual(['a-1']);
      const retry = { message: tasks[0]!.message, retryAt: driver.now + 600, countAsFailure: true };
      const reply = await driver.exchange([{ kind: 'retry', lease: tasks[0]!.lease, ...retry }], 3);
      expect(ids(reply.tasks)).toEqual(['a-2']);
    });

    it('keeps the rate of a key', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 10, { rate: 3, window: 1_600 }), ...tasksOf('b', 2)]);
      const first = await driver.exchange([], 20);
      expect(keys(first.tasks)).toBe('aaabb');
      expect(first.opensIn).toBeGreaterThan(1_000);
      expect(first.opensIn).toBeLessThanOrEqual(1_800);
      driver.clock.advance(first.opensIn! - 1);
      expect((await driver.exchange([], 20)).tasks).toEqual([]);
      driver.clock.advance(1);
      expect(keys((await driver.exchange([], 20)).tasks)).toBe('aaa');
    });

    it('lets a held key go on at once when its next task has other limits', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue(tasksOf('a', 3, { rate: 1, window: 86_400_000 }));
      await driver.enqueue(tasksOf('b', 3, { concurrency: 1 }));
      expect(keys(await driver.take(9))).toBe('ab');
      expect(await driver.take(9)).toEqual([]);
      await driver.enqueue([
        ...tasksOf('a', 1, { rate: 3, window: 86_400_000 }, 4),
        ...tasksOf('b', 1, { concurrency: 2 }, 4),
      ]);
      expect(ids(await driver.take(9)).sort()).toEqual(['a-2', 'a-3', 'b-2']);
      await driver.enqueue(tasksOf('a', 1, { rate: 1, window: 1_000 }, 5));
      expect(ids(await driver.take(9))).toEqual(['a-4']);
    });

    it('counts no start of a task that came too late and goes back', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 4, { rate: 2, window: 1_600 }), ...tasksOf('b', 2)]);
      const { tasks, countedAt } = await claim(driver, []);
      expect(keys(tasks)).toBe('aabb');
      expect(countedAt).toBe(driver.clock.now() + 10);
      driver.clock.advance(20);
      const back = tasks.map(({ lease }): Settlement => ({ kind: 'requeue', lease, countedAt }));
      expect(ids((await claim(driver, [back[0]!, back[2]!])).tasks).sort()).toEqual(['a-1', 'b-1']);
      expect((await claim(driver, [])).tasks).toEqual([]);
    });

    it('goes on counting what goes back after half its window', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue(tasksOf('a', 2, { rate: 1, window: 1_600 }));
      const { tasks, countedAt } = await claim(driver, []);
      driver.clock.advance(810);
      expect((await claim(driver, [{ kind: 'requeue', lease: tasks[0]!.lease, countedAt }])).tasks).toEqual([]);
      driver.clock.advance(800);
      expect(ids((await claim(driver, [])).tasks)).toEqual(['a-1']);
    });

    it('shows the tasks of its lines as pending, with the longest wait', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 3), ...tasksOf('b', 2, { concurrency: 1 })]);
      driver.clock.advance(7_000);
      const numbers = () => driver.broker.inspection.describeQueue('default');
      expect(await numbers()).toMatchObject({ pending: 5, aggregating: 0, groups: 0, latency: 7_000 });
      expect(await driver.broker.inspection.getTask('default', 'a-2')).toMatchObject({
        state: 'pending',
        pendingSince: driver.clock.now() - 7_000,
      });
      await driver.take(10);
      expect(await numbers()).toMatchObject({ pending: 1, active: 4, latency: 7_000 });
    });

    it('lets tasks of its lines be deleted, archived and run by hand', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue(tasksOf('a', 4));
      const move = (action: 'run' | 'archive' | 'delete', id: string) =>
        driver.broker.administration.moveTasks('default', action, [id]);
      expect(await move('delete', 'a-1')).toEqual(['moved']);
      expect(await move('archive', 'a-2')).toEqual(['moved']);
      expect(await move('run', 'a-3')).toEqual(['same']);
      const other = Buffer.from('other');
      expect(await driver.broker.administration.updatePayload('default', 'a-4', other)).toBe('updated');
      expect(await driver.broker.inspection.describeQueue('default')).toMatchObject({ pending: 2, archived: 1 });
      expect(await move('run', 'a-2')).toEqual(['moved']);
      expect(ids(await driver.take(9)).sort()).toEqual(['a-2', 'a-3', 'a-4']);
    });

    it('is deleted with its lines', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 3, { weight: 2 }), ...tasksOf('b', 2, { concurrency: 1 })]);
      const held = await driver.take(9);
      await driver.settle(...held.map(done));
      await driver.enqueue(tasksOf('b', 2, { concurrency: 1 }, 5));
      expect(await driver.broker.administration.deleteQueue('default', { force: false })).toBe('notEmpty');
      expect(await driver.broker.administration.deleteQueue('default', { force: true })).toBe('deleted');
      expect(await driver.world.dump()).toEqual({});
    });

    it('leaves nothing behind when all has ended', async ({ driver }) => {
      beFair(driver);
      await driver.enqueue([...tasksOf('a', 3, { weight: 2, concurrency: 5 }), ...tasksOf('b', 1)]);
      const tasks = await driver.take(10);
      await driver.exchange(tasks.map(done), 10);
      const last = await driver.exchange([], 10);
      expect(last).toMatchObject({ tasks: [], backlog: 0, opensIn: 0 });
    });
  });
}
