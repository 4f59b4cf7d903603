import { describe, expect, onTestFinished, vi } from 'vitest';
import { CALL_WINDOW_MS, CREW_PARTS, SEATS, type StandbyCall } from '../../../lib/broker/seats.js';
import type { Driver, DriverTest } from '../driver.js';

const seatsOf = async (driver: Driver, servers: readonly string[]): Promise<number[]> => {
  const seats: number[] = [];
  for (const server of servers) seats.push((await driver.broker.seats.take('crew', server, 0)).seat);
  return seats;
};

/** What a server of the part hears. */
async function hear(driver: Driver, part: number): Promise<StandbyCall[]> {
  const heard: StandbyCall[] = [];
  onTestFinished(await driver.broker.seats.listen('crew', part, (call) => heard.push(call)));
  return heard;
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `s${index + 1}`);

export function exerciseSeats(it: DriverTest): void {
  describe('seats', () => {
    it('go to the first servers of a crew, and are kept', async ({ driver }) => {
      expect(await seatsOf(driver, names(SEATS + 2))).toEqual([1, 2, 3, 4, 5, 6, 0, 0]);
      expect(await seatsOf(driver, names(SEATS + 2).toReversed())).toEqual([0, 0, 6, 5, 4, 3, 2, 1]);
      expect((await driver.broker.seats.take('other', 's9', 0)).seat).toBe(1);
    });

    it('are crowded when one comes too late, for all to see', async ({ driver }) => {
      await seatsOf(driver, names(SEATS));
      expect(await driver.broker.seats.take('crew', 's1', 0)).toMatchObject({ crowded: false });
      expect(await driver.broker.seats.take('crew', 'late', 0)).toMatchObject({ seat: 0, crowded: true });
      expect(await driver.broker.seats.take('crew', 's1', 0)).toMatchObject({ crowded: true });
    });

    it('that are left go to the next that comes', async ({ driver }) => {
      await seatsOf(driver, names(SEATS));
      expect(await driver.broker.seats.leave('crew', 's4', 0)).toMatchObject({ seat: 0, maintained: true });
      expect(await driver.broker.seats.leave('crew', 's4', 0)).toMatchObject({ seat: 0 });
      expect(await seatsOf(driver, ['s7', 's4'])).toEqual([4, 0]);
    });

    it('of those who maintain are taken over by others with a seat', async ({ driver }) => {
      await seatsOf(driver, names(4));
      await driver.broker.seats.leave('crew', 's2', 0);
      expect(await seatsOf(driver, ['s3', 's4', 's1'])).toEqual([2, 4, 1]);
      expect(await seatsOf(driver, ['s5'])).toEqual([3]);
    });

    it('are given up for the first one, whose holder polls for all', async ({ driver }) => {
      await seatsOf(driver, names(2));
      await driver.broker.seats.leave('crew', 's1', 0);
      expect(await seatsOf(driver, ['s2', 's2', 's3'])).toEqual([1, 1, 2]);
    });

    it('say whether somebody maintains', async ({ driver }) => {
      const { seats } = driver.broker;
      expect(await seats.leave('crew', 's1', 0)).toEqual({ seat: 0, maintained: false, crowded: false, called: false });
      expect(await seats.take('crew', 's1', 0)).toMatchObject({ seat: 1, maintained: true });
      expect(await seats.leave('crew', 's2', 0)).toMatchObject({ maintained: true });
      expect(await seats.leave('crew', 's1', 0)).toMatchObject({ maintained: false });
    });

    it('tell standbys of one that is left', async ({ driver }) => {
      await seatsOf(driver, names(SEATS + 1));
      const heard = await hear(driver, 3);
      await driver.broker.seats.leave('crew', 's1', 0);
      await vi.waitFor(() => expect(heard).toEqual(['seat']));
    });

    it('call standbys part by part, each once', async ({ driver }) => {
      const { seats } = driver.broker;
      const heard = await Promise.all(Array.from({ length: CREW_PARTS }, (_, part) => hear(driver, part)));
      const called = async (): Promise<number[]> => {
        const replies = await Promise.all(heard.map((_, part) => seats.leave('crew', 'x', part)));
        return replies.flatMap((reply, part) => (reply.called ? [part] : []));
      };
      expect(await called()).toEqual([]);
      expect(await seats.call('crew', 14)).toBe(0);
      expect(await called()).toEqual([14]);
      expect(await seats.call('crew', 3)).toBe(0);
      expect(await called()).toEqual([14, 15]);
      expect(await seats.call('crew', 3)).toBe(0);
      expect(await called()).toEqual([0, 1, 14, 15]);
      expect(await seats.call('crew', 3)).toBe(0);
      expect(await seats.call('crew', 3)).toBeGreaterThan(CALL_WINDOW_MS / 2);
      expect(await called()).toHaveLength(CREW_PARTS);
      expect(await seats.call('crew', 3)).toBeGreaterThan(CALL_WINDOW_MS / 2);
      await vi.waitFor(() => expect(heard.flat()).toHaveLength(CREW_PARTS));
      expect(new Set(heard.map((calls) => calls.join()))).toEqual(new Set(['work']));
    });

    it('call nobody who no longer listens, and no other crew', async ({ driver }) => {
      const { seats } = driver.broker;
      const heard: StandbyCall[] = [];
      const end = await seats.listen('crew', 5, (call) => heard.push(call));
      const others: StandbyCall[] = [];
      onTestFinished(await seats.listen('other', 5, (call) => others.push(call)));
      await end();
      const last = await hear(driver, 5);
      await seats.call('crew', 5);
      await vi.waitFor(() => expect(last).toEqual(['work']));
      expect(heard).toEqual([]);
      await seats.call('other', 5);
      await vi.waitFor(() => expect(others).toEqual(['work']));
    });
  });
}
