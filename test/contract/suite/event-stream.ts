import { describe, expect } from 'vitest';
import type { StreamedEntry } from '../../../lib/broker/events.js';
import type { DriverTest } from '../driver.js';

const entries = (first: number, count: number): Buffer[] =>
  Array.from({ length: count }, (_, index) => Buffer.from(`e${first + index}`));
const texts = (read: readonly StreamedEntry[]): string[] => read.map(({ data }) => data.toString());

export function exerciseEventStream(it: DriverTest): void {
  describe('the stream of events', () => {
    it('is read in the order in which it was written, from any position', async ({ driver }) => {
      const { broker, clock } = driver;
      expect([await broker.events.readEvents('events', '0-0', 10), await broker.events.lastEventId('events')]).toEqual([
        [],
        '0-0',
      ]);
      await broker.events.appendEvents('events', entries(0, 2), { most: 100 });
      clock.advance(5);
      await broker.events.appendEvents('events', entries(2, 2), { most: 100 });
      const read = await broker.events.readEvents('events', '0-0', 10);
      expect(texts(read)).toEqual(['e0', 'e1', 'e2', 'e3']);
      const now = clock.now();
      expect(read.map(({ id }) => id)).toEqual([`${now - 5}-0`, `${now - 5}-1`, `${now}-0`, `${now}-1`]);
      expect(await broker.events.lastEventId('events')).toBe(`${now}-1`);
      expect(texts(await broker.events.readEvents('events', read[0]!.id, 2))).toEqual(['e1', 'e2']);
      expect(texts(await broker.events.readEvents('events', `${now - 3}-7`, 10))).toEqual(['e2', 'e3']);
      expect(await broker.events.readEvents('events', read[3]!.id, 10)).toEqual([]);
    });

    it('continues from its newest entry when a clock is behind', async ({ driver }) => {
      const { broker, clock } = driver;
      await broker.events.appendEvents('events', entries(0, 2), { most: 100 });
      const newest = clock.now();
      clock.moveTo(newest - 60_000);
      await broker.events.appendEvents('events', entries(2, 2), { most: 100 });
      const read = await broker.events.readEvents('events', '0-0', 10);
      expect(texts(read)).toEqual(['e0', 'e1', 'e2', 'e3']);
      expect(await broker.events.lastEventId('events')).toBe(`${newest}-3`);
    });

    it('keeps about as many entries as asked for, the newest ones, with any bytes', async ({ driver }) => {
      const { broker } = driver;
      for (let first = 0; first < 2_000; first += 1_000)
        await broker.events.appendEvents('events', entries(first, 1_000), { most: 300 });
      const bytes = Buffer.from([0, 255, 10]);
      await broker.events.appendEvents('events', [bytes], { most: 300 });
      const read = await broker.events.readEvents('events', '0-0', 5_000);
      expect(read.length).toBeGreaterThanOrEqual(300);
      expect(read.length).toBeLessThanOrEqual(450);
      expect(read.at(-1)!.data).toEqual(bytes);
      expect(texts(read.slice(0, -1))).toEqual(texts(entriesUpTo(2_000, read.length - 1)));
    });

    it('is read backwards from its newest entry, or from any position', async ({ driver }) => {
      const { broker, clock } = driver;
      expect(await broker.events.readEventsBack('events', undefined, 10)).toEqual([]);
      await broker.events.appendEvents('events', entries(0, 2), { most: 100 });
      clock.advance(5);
      await broker.events.appendEvents('events', entries(2, 2), { most: 100 });
      const read = await broker.events.readEventsBack('events', undefined, 10);
      expect(texts(read)).toEqual(['e3', 'e2', 'e1', 'e0']);
      expect(texts(await broker.events.readEventsBack('events', undefined, 1))).toEqual(['e3']);
      expect(texts(await broker.events.readEventsBack('events', read[0]!.id, 2))).toEqual(['e2', 'e1']);
      expect(texts(await broker.events.readEventsBack('events', `${clock.now() - 3}-7`, 10))).toEqual(['e1', 'e0']);
    });

    it('replaces an entry by a later one in one step', async ({ driver }) => {
      const { broker, clock } = driver;
      const append = (index: number, replaces?: string) =>
        broker.events.appendEvents('audit', entries(index, 1), { most: 100, replaces });
      const first = (await append(0))!;
      const second = (await append(1))!;
      expect([first, second]).toEqual([`${clock.now()}-0`, `${clock.now()}-1`]);
      // In the same millisecond, and the newest entry is replaced: the ids continue nevertheless.
      expect(await append(2, second)).toBe(`${clock.now()}-2`);
      expect(await append(3, first)).toBe(`${clock.now()}-3`);
      expect(await append(4, first)).toBe(`${clock.now()}-4`); // it is gone already
      expect(texts(await broker.events.readEvents('audit', '0-0', 10))).toEqual(['e2', 'e3', 'e4']);
    });

    it('is independent of the other streams, and keeps its own ids', async ({ driver }) => {
      const { broker, clock } = driver;
      await broker.events.appendEvents('events', entries(0, 1), { most: 100 });
      await broker.events.appendEvents('audit', entries(1, 1), { most: 100 });
      expect(texts(await broker.events.readEvents('events', '0-0', 10))).toEqual(['e0']);
      expect(texts(await broker.events.readEventsBack('audit', undefined, 10))).toEqual(['e1']);
      expect(await broker.events.lastEventId('audit')).toBe(`${clock.now()}-0`);
    });

    it('is not changed by appending nothing', async ({ driver }) => {
      const { broker, clock } = driver;
      expect(await broker.events.appendEvents('events', [], { most: 100 })).toBeUndefined();
      expect(await broker.events.lastEventId('events')).toBe('0-0');
      await broker.events.appendEvents('events', entries(0, 1), { most: 100 });
      await broker.events.appendEvents('events', [], { most: 100 });
      expect(await broker.events.lastEventId('events')).toBe(`${clock.now()}-0`);
    });
  });
}

const entriesUpTo = (end: number, count: number): StreamedEntry[] =>
  entries(end - count, count).map((data) => ({ id: '', data }));
