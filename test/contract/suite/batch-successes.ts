import { describe, expect } from 'vitest';
import { memberOf } from '../../../lib/broker/batches.js';
import type { LeasedTask, Settlement } from '../../../lib/broker/broker.js';
import { request } from '../../support/messages.js';
import { BatchSession } from '../batch-session.js';
import { archival, done, type Driver, type DriverTest } from '../driver.js';

/** A batch with so many members in `default`, which are claimed. */
async function begin(driver: Driver, count: number): Promise<[BatchSession, string, LeasedTask[]]> {
  const session = new BatchSession(driver);
  const batch = await session.open();
  await session.add(batch, count);
  await session.close(batch);
  return [session, batch, await driver.take(count)];
}

/** Settles in one exchange, which must store all. */
async function settle(session: BatchSession, settlements: readonly Settlement[]): Promise<void> {
  const { settled } = session.took(await session.driver.exchange([...settlements], 0));
  expect(settled).toEqual(settlements.map(() => 'settled'));
}

const numberOf = (task: LeasedTask): number => memberOf(task.lease.id)!.number;

export function exerciseBatchSuccesses(it: DriverTest): void {
  describe('members that succeed in one exchange', () => {
    it('are counted, the last ones as the end of the batch', async ({ driver }) => {
      const [session, batch, tasks] = await begin(driver, 100);
      await settle(session, tasks.slice(0, 37).map(done));
      expect(await session.counts(batch)).toBe('closed 100 63 37 0');
      await settle(session, tasks.slice(37, 99).map(done));
      expect(await session.callbacks(batch)).toEqual([]);
      expect(await session.counts(batch)).toBe('closed 100 1 99 0');
      await settle(session, tasks.slice(99).map(done));
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
      expect(await session.counts(batch)).toBe('succeeded 100 0 100 0');
    });

    it('are counted beside plain tasks and members of another batch', async ({ driver }) => {
      const [session, batch, tasks] = await begin(driver, 20);
      const [, other, others] = await begin(driver, 20);
      await driver.enqueue(Array.from({ length: 3 }, () => request({})));
      await driver.enqueue([request({ id: 'batch-of-nobody~1' }), request({ id: `${batch}~x` })]);
      const plain = await driver.take(5);
      const mixed = [tasks[7]!, plain[0]!, others[3]!, tasks[2]!, ...plain.slice(1), others[4]!];
      await settle(session, mixed.map(done));
      expect(await session.counts(batch)).toBe('closed 20 18 2 0');
      expect(await session.counts(other)).toBe('closed 20 18 2 0');
    });

    it('are counted in any order, near each other or not', async ({ driver }) => {
      const [session, batch, tasks] = await begin(driver, 400);
      const sorted = tasks.toSorted((one, two) => numberOf(one) - numberOf(two));
      await settle(session, [sorted[399]!, sorted[0]!].map(done));
      await settle(
        session,
        sorted
          .filter((_, n) => n > 0 && n < 399 && n % 3 === 0)
          .reverse()
          .map(done),
      );
      expect(await session.counts(batch)).toBe('closed 400 266 134 0');
      await settle(session, sorted.filter((_, n) => n % 3 === 1).map(done));
      await settle(session, sorted.filter((_, n) => n < 399 && n % 3 === 2).map(done));
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
    });

    it('are counted but for those whose lease is lost', async ({ driver }) => {
      const [session, batch, tasks] = await begin(driver, 10);
      const stale = { ...tasks[4]!, lease: { ...tasks[4]!.lease, expiresAt: 1 } };
      const settlements = [tasks[3]!, stale, tasks[5]!].map(done);
      const { settled } = session.took(await driver.exchange(settlements, 0));
      expect(settled).toEqual(['settled', 'lost', 'settled']);
      expect(await session.counts(batch)).toBe('closed 10 8 2 0');
      await settle(session, [done(tasks[4]!)]);
      expect(await session.counts(batch)).toBe('closed 10 7 3 0');
    });

    it('are counted once, when they are settled twice', async ({ driver }) => {
      const [session, batch, tasks] = await begin(driver, 10);
      const twice = [tasks[0]!, tasks[1]!, tasks[0]!].map(done);
      expect(session.took(await driver.exchange(twice, 0)).settled).toEqual(['settled', 'settled', 'lost']);
      expect(await session.counts(batch)).toBe('closed 10 8 2 0');
    });

    it('are counted beside and after members that die', async ({ driver }) => {
      const [session, batch, tasks] = await begin(driver, 10);
      await settle(session, [done(tasks[0]!), archival(tasks[1]!), done(tasks[2]!)]);
      expect(await session.callbacks(batch)).toEqual(['death']);
      await settle(session, tasks.slice(3).map(done));
      expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
      expect(await session.counts(batch)).toBe('completed 10 0 9 1');
    });

    it('are counted when the caller does not say that they are members', async ({ driver }) => {
      const [session, batch, tasks] = await begin(driver, 10);
      const silent = ({ lease }: LeasedTask): Settlement => ({ kind: 'done', lease, uniqueKey: '' });
      await settle(session, tasks.slice(0, 4).map(silent));
      await settle(session, [done(tasks[4]!), silent(tasks[5]!), done(tasks[6]!)]);
      expect(await session.counts(batch)).toBe('closed 10 3 7 0');
    });
  });
}
