import { describe, expect } from 'vitest';
import { MAX_ASIDE } from '../../../lib/broker/consumer.js';
import { request } from '../../support/messages.js';
import { done, type Driver, type DriverTest } from '../driver.js';

const ASIDE = new Map([
  ['narrow', 'limit'],
  ['other', 'another'],
]);

const take = (driver: Driver, count: number, more = {}) =>
  driver.broker.consumer.exchange('default', { settle: [], take: count, aside: ASIDE, ...more });

const add = (driver: Driver, ...types: string[]) =>
  driver.enqueue(types.map((type, index) => request({ id: `${type}${index}`, type })));

export function exerciseAside(it: DriverTest): void {
  describe('tasks that a claim puts aside', () => {
    it('are held in their waitlists, and what is behind them is claimed', async ({ driver }) => {
      await add(driver, 'narrow', 'narrow', 'wide', 'other', 'narrow', 'wide');
      const reply = await take(driver, 2);
      expect(reply.tasks.map(({ lease }) => lease.id)).toEqual(['wide2', 'wide5']);
      expect(reply).toMatchObject({
        backlog: 0,
        limitedFor: 0,
        aside: new Map([
          ['narrow', 3],
          ['other', 1],
        ]),
      });
      expect(await driver.broker.inspection.describeQueue('default')).toMatchObject({ held: 4, active: 2, retry: 0 });
      expect(await driver.broker.inspection.getTask('default', 'other3')).toMatchObject({
        state: 'held',
        held: { waitlist: 'another' },
        pendingSince: undefined,
      });
      expect(await driver.broker.limiting.wakeWaiting('default', 'limit', 9)).toEqual({ woken: 3, left: 0 });
      const { tasks } = await driver.broker.consumer.exchange('default', { settle: [], take: 9 });
      expect(tasks.map(({ lease }) => lease.id)).toEqual(['narrow0', 'narrow1', 'narrow4']); // in their order
    });

    it('stay where they are behind as many as are wanted', async ({ driver }) => {
      await add(driver, 'wide', 'narrow');
      const reply = await take(driver, 1);
      expect(reply).toMatchObject({ tasks: [{ lease: { id: 'wide0' } }], backlog: 1 });
      expect(reply.aside).toBeUndefined();
    });

    it('are none of another type, of a paused queue, or while nothing is wanted', async ({ driver }) => {
      await add(driver, 'narrow:x', 'narro', 'narrow');
      expect((await take(driver, 0)).aside).toBeUndefined();
      await driver.broker.administration.pauseQueue('default');
      expect(await take(driver, 9)).toMatchObject({ tasks: [], backlog: 0 });
      await driver.broker.administration.resumeQueue('default');
      const reply = await take(driver, 9);
      expect(reply.tasks.map(({ message }) => message.type)).toEqual(['narrow:x', 'narro']);
      expect(reply.aside).toEqual(
        new Map([
          ['narrow', 1],
          ['other', 0],
        ]),
      );
    });

    it('keep the position they had when they were woken', async ({ driver }) => {
      await add(driver, 'narrow', 'narrow');
      await take(driver, 9);
      await driver.broker.limiting.wakeWaiting('default', 'limit', 1);
      driver.clock.advance(1_000);
      await driver.add({ id: 'late', type: 'narrow' });
      await take(driver, 9);
      const { ids } = await driver.broker.listing.listIds('default', { state: 'held', size: 9 });
      expect(ids).toEqual(['narrow0', 'narrow1', 'late']);
    });

    it('go with settlements and limits of the queue, and with times', async ({ driver }) => {
      const first = await driver.takeNew();
      await add(driver, 'narrow', 'wide', 'wide');
      const limits = { active: 1, rate: 0, window: 1 };
      const reply = await take(driver, 9, { settle: [done(first)], limits, since: true });
      expect(reply).toMatchObject({ settled: ['settled'], backlog: 1, limitedFor: 100 });
      expect(reply.tasks).toMatchObject([{ lease: { id: 'wide1' }, pendingSince: driver.clock.now() }]);
      expect(reply.aside?.get('narrow')).toBe(1);
    });

    it('are so many in one call', async ({ driver }) => {
      await driver.enqueue(Array.from({ length: MAX_ASIDE + 40 }, () => request({ type: 'narrow' })));
      await driver.add({ id: 'last', type: 'wide' });
      const first = await take(driver, 1);
      expect(first).toMatchObject({ tasks: [], backlog: 41 });
      expect(first.aside?.get('narrow')).toBe(MAX_ASIDE);
      expect(await take(driver, 1)).toMatchObject({ tasks: [{ lease: { id: 'last' } }], backlog: 0 });
      expect(await driver.broker.inspection.describeQueue('default')).toMatchObject({ held: MAX_ASIDE + 40 });
    });
  });
}
