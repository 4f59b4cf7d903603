import { describe, expect, it } from 'vitest';
import type { StreamedEntry } from '../../../lib/broker/event-stream.js';
import type { Driver } from '../driver.js';

const entries = (first: number, count: number): Buffer[] =>
  Array.from({ length: count }, (_, index) => Buffer.from(`e${first + index}`));
const texts = (read: readonly StreamedEntry[]): string[] => read.map(({ data }) => data.toString());

export function exerciseEventStream(current: () => Driver): void {
  describe('the stream of events', () => {
    it('is read in the order in which it was written, from any place on', async () => {
      const { broker, clock } = current();
      expect([await broker.readEvents('0-0', 10), await broker.lastEventId()]).toEqual([[], '0-0']);
      await broker.appendEvents(entries(0, 2), 100);
      clock.advance(5);
      await broker.appendEvents(entries(2, 2), 100);
      const read = await broker.readEvents('0-0', 10);
      expect(texts(read)).toEqual(['e0', 'e1', 'e2', 'e3']);
      const now = clock.now();
      expect(read.map(({ id }) => id)).toEqual([`${now - 5}-0`, `${now - 5}-1`, `${now}-0`, `${now}-1`]);
      expect(await broker.lastEventId()).toBe(`${now}-1`);
      expect(texts(await broker.readEvents(read[0]!.id, 2))).toEqual(['e1', 'e2']);
      expect(texts(await broker.readEvents(`${now - 3}-7`, 10))).toEqual(['e2', 'e3']);
      expect(await broker.readEvents(read[3]!.id, 10)).toEqual([]);
    });

    it('goes on from its newest entry when a clock is behind', async () => {
      const { broker, clock } = current();
      await broker.appendEvents(entries(0, 2), 100);
      const newest = clock.now();
      clock.moveTo(newest - 60_000);
      await broker.appendEvents(entries(2, 2), 100);
      const read = await broker.readEvents('0-0', 10);
      expect(texts(read)).toEqual(['e0', 'e1', 'e2', 'e3']);
      expect(await broker.lastEventId()).toBe(`${newest}-3`);
    });

    it('keeps about as many as are asked for, the newest, and any bytes', async () => {
      const { broker } = current();
      for (let first = 0; first < 2_000; first += 1_000) await broker.appendEvents(entries(first, 1_000), 300);
      const bytes = Buffer.from([0, 255, 10]);
      await broker.appendEvents([bytes], 300);
      const read = await broker.readEvents('0-0', 5_000);
      expect(read.length).toBeGreaterThanOrEqual(300);
      expect(read.length).toBeLessThanOrEqual(450);
      expect(read.at(-1)!.data).toEqual(bytes);
      expect(texts(read.slice(0, -1))).toEqual(texts(entriesUpTo(2_000, read.length - 1)));
    });

    it('is not changed by appending nothing', async () => {
      const { broker, clock } = current();
      await broker.appendEvents([], 100);
      expect(await broker.lastEventId()).toBe('0-0');
      await broker.appendEvents(entries(0, 1), 100);
      await broker.appendEvents([], 100);
      expect(await broker.lastEventId()).toBe(`${clock.now()}-0`);
    });
  });
}

const entriesUpTo = (end: number, count: number): StreamedEntry[] =>
  entries(end - count, count).map((data) => ({ id: '', data }));
