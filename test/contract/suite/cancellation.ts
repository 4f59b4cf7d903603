import { describe, expect, vi } from 'vitest';
import { CANCELLATION_SECONDS, type Cancellation, MAX_CANCELLATIONS } from '../../../lib/broker/cancellation.js';
import { type Driver, type DriverTest, expectUnchanged } from '../driver.js';

export function exerciseCancellation(it: DriverTest): void {
  describe('a published cancellation', () => {
    it('reaches every subscriber, with the id unchanged', async ({ driver }) => {
      const { broker } = driver;
      const received: string[][] = [[], []];
      const ends = await Promise.all(
        received.map((ids) => broker.cancellation.subscribeCancellations((id) => void ids.push(id))),
      );
      for (const id of ['a', 'ü b:{c}', 'b']) await broker.cancellation.publishCancellation(id);
      // In no order: a cluster routes each message differently.
      await vi.waitFor(() => {
        for (const ids of received) expect([...ids].sort()).toEqual(['a', 'b', 'ü b:{c}']);
      });
      for (const end of ends) await end();
    });

    it('does not reach a subscription that has ended', async ({ driver }) => {
      // Ids of this test only: in a cluster a message may reach a node after its test has ended.
      const { broker } = driver;
      const [early, late]: [string[], string[]] = [[], []];
      const end = await broker.cancellation.subscribeCancellations((id) => void early.push(id));
      const endLate = await broker.cancellation.subscribeCancellations((id) => void late.push(id));
      await broker.cancellation.publishCancellation('first');
      await vi.waitFor(() => expect(early).toEqual(['first']));
      await end();
      await end();
      await broker.cancellation.publishCancellation('second');
      await vi.waitFor(() => expect(late).toEqual(['first', 'second']));
      expect(early).toEqual(['first']);
      await endLate();
    });

    it('is no error when nobody listens', async ({ driver }) => {
      await expect(driver.broker.cancellation.publishCancellation('nobody')).resolves.toBeUndefined();
    });
  });

  describe('a recorded cancellation', () => {
    const cancellation = (driver: Driver, id: string, more: Partial<Cancellation> = {}): Cancellation => ({
      id,
      at: driver.clock.now(),
      outcome: 'retry',
      reason: undefined,
      ...more,
    });

    it('is found by its id, as it was recorded, without touching the queues', async ({ driver }) => {
      const { broker } = driver;
      await driver.add({ id: 'a' });
      const wanted = cancellation(driver, 'a', { outcome: 'archive', reason: 'a "reason" / ü 🎉\n\0' });
      await expectUnchanged(driver, async () => {
        expect(await broker.cancellation.findCancellations(['a', 'b'])).toEqual([]);
        await broker.cancellation.recordCancellation(wanted);
        await broker.cancellation.recordCancellation(cancellation(driver, 'ü b:{c}', { outcome: 'delete' }));
        expect(await broker.cancellation.findCancellations(['b', 'a'])).toEqual([{ ...wanted, acted: [] }]);
        expect(await broker.cancellation.findCancellations(['ü b:{c}'])).toMatchObject([
          { id: 'ü b:{c}', outcome: 'delete' },
        ]);
        expect(await broker.cancellation.findCancellations([])).toEqual([]);
      });
    });

    it('replaces an earlier one of the same id', async ({ driver }) => {
      const { broker, clock } = driver;
      await broker.cancellation.recordCancellation(cancellation(driver, 'a', { reason: 'first' }));
      await broker.cancellation.noteCancelled([{ id: 'a', at: clock.now(), queue: 'default' }]);
      clock.advance(1);
      const later = cancellation(driver, 'a', { reason: 'half \ud800', outcome: 'delete' });
      await broker.cancellation.recordCancellation(later);
      expect(await broker.cancellation.findCancellations(['a'])).toEqual([
        { ...later, reason: 'half \ufffd', acted: [] },
      ]);
    });

    it('lists the queues in which servers have acted on it', async ({ driver }) => {
      const { broker, clock } = driver;
      const [a, b] = [cancellation(driver, 'a', { reason: 'r' }), cancellation(driver, 'b')];
      for (const one of [a, b]) await broker.cancellation.recordCancellation(one);
      await broker.cancellation.noteCancelled([
        { ...a, queue: 'default' },
        { ...b, queue: 'b {x}:' },
        { ...a, queue: 'ü' },
        { id: 'gone', at: clock.now(), queue: 'default' },
        { ...a, at: clock.now() - 1, queue: 'of an earlier one' },
      ]);
      expect(await broker.cancellation.findCancellations(['a', 'b'])).toEqual([
        { ...a, acted: ['default', 'ü'] },
        { ...b, acted: ['b {x}:'] },
      ]);
    });

    it('is forgotten after some time', async ({ driver }) => {
      const { broker, clock } = driver;
      await broker.cancellation.recordCancellation(cancellation(driver, 'a'));
      clock.advance(CANCELLATION_SECONDS * 1000);
      expect(await broker.cancellation.findCancellations(['a'])).toHaveLength(1);
      clock.advance(1);
      expect(await broker.cancellation.findCancellations(['a'])).toEqual([]);
      await broker.cancellation.recordCancellation(cancellation(driver, 'b'));
      expect(await broker.cancellation.findCancellations(['a', 'b'])).toMatchObject([{ id: 'b' }]);
    });

    it('is removed for later ones when there are too many', async ({ driver }) => {
      const { broker, clock } = driver;
      const ids = Array.from({ length: MAX_CANCELLATIONS + 5 }, (_, index) => `c${index}`);
      for (let first = 0; first < ids.length; first += 1000) {
        const some = ids.slice(first, first + 1000);
        await Promise.all(
          some.map((id, index) =>
            broker.cancellation.recordCancellation(cancellation(driver, id, { at: clock.now() + first + index })),
          ),
        );
      }
      const found = await broker.cancellation.findCancellations(ids);
      expect(found.map(({ id }) => id)).toEqual(ids.slice(5));
    });
  });
}
