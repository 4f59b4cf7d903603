import { describe, expect, onTestFinished, vi } from 'vitest';
import type { LeasedTask } from '../../../lib/broker/broker.js';
import { NOTE_LIMITS, type NotePiece, type Notes, SHOWN_CHUNK_BYTES } from '../../../lib/broker/notes.js';
import { type Driver, type DriverTest, archival, completion, done, expectQueue, retrial } from '../driver.js';

const piece = (kind: NotePiece['kind'], entries: readonly unknown[], leftOut = 0): NotePiece => ({
  kind,
  count: entries.length,
  text: JSON.stringify(entries),
  leftOut,
});

const write = ({ broker }: Driver, { lease }: LeasedTask, notes: Partial<Notes>): Promise<boolean> =>
  broker.notes.write(lease, { progress: undefined, fresh: false, pieces: [], ...notes });

const placeOf = ({ lease: { queue, id } }: LeasedTask) => ({ queue, id });

async function headsOf({ broker }: Driver, task: LeasedTask) {
  const [found] = await broker.following.read([placeOf(task)]);
  return found?.notes;
}

const read = async ({ broker }: Driver, task: LeasedTask) =>
  (await broker.inspection.getTask('default', task.lease.id))?.notes;

async function chunksOf(driver: Driver, task: LeasedTask): Promise<unknown[]> {
  const { first, next } = (await headsOf(driver, task))!.chunk;
  const numbers = Array.from({ length: next - first }, (_, n) => first + n);
  const pieces = await driver.broker.notes.pieces(placeOf(task), 'chunk', numbers);
  return pieces.flatMap((text) => JSON.parse(text!) as unknown[]);
}

export function exerciseNotes(it: DriverTest): void {
  describe('what a handler says', () => {
    it('is kept with the task until it is deleted, and is nothing at first', async ({ driver }) => {
      const task = await driver.takeNew();
      expect(await headsOf(driver, task)).toBeUndefined();
      expect(await read(driver, task)).toBeUndefined();
      expect(await driver.broker.notes.pieces(placeOf(task), 'log', [0])).toEqual([undefined]);
      expect(
        await write(driver, task, { progress: '[1,0.5,"ü"]', pieces: [piece('log', ['a']), piece('log', ['b', 'ü'])] }),
      ).toBe(true);
      const said = { progress: '[1,0.5,"ü"]', log: ['["a"]', '["b","ü"]'], logDropped: 0, chunks: [] };
      expect(await read(driver, task)).toEqual(said);
      expect(await headsOf(driver, task)).toEqual({
        progress: said.progress,
        log: { first: 0, next: 2, dropped: 0, start: 0 },
        chunk: { first: 0, next: 0, dropped: 0, start: 0 },
      });
      await driver.settle(retrial(task, driver.now));
      await driver.broker.maintenance.forward('default');
      const again = await driver.takeOne();
      expect(await write(driver, again, { pieces: [piece('log', ['c'])] })).toBe(true);
      await driver.settle(completion(again, driver.now + 60));
      expect(await read(driver, task)).toEqual({ ...said, log: [...said.log, '["c"]'] });
      await driver.broker.administration.moveTasks('default', 'delete', [task.lease.id]);
      expect(await read(driver, task)).toBeUndefined();
    });

    it('is written by whoever has the lease, and nobody else', async ({ driver }) => {
      const task = await driver.takeNew();
      await driver.settle({ kind: 'requeue', lease: task.lease });
      expect(await write(driver, task, { progress: '[1,1]' })).toBe(false);
      driver.clock.advance(5_000);
      const again = await driver.takeOne();
      expect(await write(driver, task, { pieces: [piece('log', ['x'])] })).toBe(false);
      expect(await read(driver, task)).toBeUndefined();
      expect(await write(driver, again, { pieces: [piece('log', ['y'])] })).toBe(true);
      await driver.settle(archival(again));
      expect(await write(driver, again, { pieces: [piece('log', ['z'])] })).toBe(false);
      expect((await read(driver, task))?.log).toEqual(['["y"]']);
    });

    it('does not bring back a task that is gone', async ({ driver }) => {
      const task = await driver.takeNew();
      await driver.settle(done(task));
      expect(await write(driver, task, { progress: '[1,1]' })).toBe(false);
      await expectQueue(driver, { active: [], lease: [], tasks: {} });
    });

    it('loses its oldest lines when there are too many, and counts them', async ({ driver }) => {
      const task = await driver.takeNew();
      const { entries } = NOTE_LIMITS.log;
      const hundred = Array.from({ length: 100 }, (_, n) => n);
      for (let lines = 0; lines < entries; lines += 100) await write(driver, task, { pieces: [piece('log', hundred)] });
      expect((await headsOf(driver, task))!.log).toEqual({ first: 0, next: 10, dropped: 0, start: 0 });
      await write(driver, task, { pieces: [piece('log', ['one more'], 7), piece('log', hundred)] });
      expect((await headsOf(driver, task))!.log).toEqual({ first: 2, next: 12, dropped: 207, start: 0 });
      const said = await read(driver, task);
      expect(said).toMatchObject({ logDropped: 207 });
      expect(said!.log).toHaveLength(10);
      expect(said!.log[8]).toBe('["one more"]');
      expect(await driver.broker.notes.pieces(placeOf(task), 'log', [1, 2])).toEqual([
        undefined,
        JSON.stringify(hundred),
      ]);
    });

    it('is bounded in bytes, of which the newest piece may have more', async ({ driver }) => {
      const task = await driver.takeNew();
      const half = 'x'.repeat(NOTE_LIMITS.log.bytes / 2);
      for (const _ of [1, 2, 3]) await write(driver, task, { pieces: [piece('log', [half])] });
      expect((await headsOf(driver, task))!.log).toEqual({ first: 2, next: 3, dropped: 2, start: 0 });
      const whole = 'ü'.repeat(NOTE_LIMITS.log.bytes);
      await write(driver, task, { pieces: [piece('log', ['short']), piece('log', [whole])] });
      expect((await headsOf(driver, task))!.log).toEqual({ first: 4, next: 5, dropped: 4, start: 0 });
      expect((await read(driver, task))!.log).toEqual([JSON.stringify([whole])]);
    });

    it('has the chunks of the latest attempt only', async ({ driver }) => {
      const task = await driver.takeNew();
      await write(driver, task, { fresh: true, pieces: [piece('chunk', [{ token: 'a' }], 3)] });
      await write(driver, task, { pieces: [piece('chunk', ['b', null]), piece('log', ['l'])] });
      expect(await chunksOf(driver, task)).toEqual([{ token: 'a' }, 'b', null]);
      expect((await headsOf(driver, task))!.chunk).toEqual({ first: 0, next: 2, dropped: 3, start: 0 });
      await write(driver, task, { fresh: true, pieces: [piece('chunk', ['again'])] });
      expect(await chunksOf(driver, task)).toEqual(['again']);
      // Numbers go on, so that a follower sees that these are others.
      expect((await headsOf(driver, task))!.chunk).toEqual({ first: 2, next: 3, dropped: 0, start: 2 });
      expect(await read(driver, task)).toEqual({
        progress: undefined,
        log: ['["l"]'],
        logDropped: 0,
        chunks: ['["again"]'],
      });
    });

    it('shows an inspector the last chunks, up to so many bytes', async ({ driver }) => {
      const task = await driver.takeNew();
      const third = 'x'.repeat(SHOWN_CHUNK_BYTES / 3);
      for (const n of [1, 2, 3, 4]) await write(driver, task, { pieces: [piece('chunk', [n, third])] });
      const shown = (await read(driver, task))!.chunks;
      expect(shown.map((text) => (JSON.parse(text) as unknown[])[0])).toEqual([3, 4]);
      await write(driver, task, { pieces: [piece('chunk', [5, third + third + third])] });
      expect((await read(driver, task))!.chunks).toHaveLength(1);
    });

    it('is noticed by those who follow the task', async ({ driver }) => {
      const task = await driver.takeNew();
      const changed: string[] = [];
      const source = driver.broker.following.follow({ onChanged: ({ id }) => void changed.push(id), onLost: () => {} });
      onTestFinished(() => source.close());
      const notes: Partial<Notes>[] = [
        { progress: '[1,0.1]' },
        { progress: '[1,0.1]' },
        { pieces: [piece('chunk', [1])] },
      ];
      for (const [index, one] of notes.entries()) {
        await source.arm([placeOf(task)]);
        await write(driver, task, one);
        await vi.waitFor(() => expect(changed).toHaveLength(index + 1));
      }
    });

    it('is no step, and a step is nothing said', async ({ driver }) => {
      const task = await driver.takeNew();
      const { checkpoints } = driver.broker;
      await checkpoints.write(task.lease, 'note:log', Buffer.from('1'));
      expect(await read(driver, task)).toBeUndefined();
      await write(driver, task, { progress: '[1,1]', fresh: true, pieces: [piece('log', ['a']), piece('chunk', [1])] });
      const stored = await checkpoints.read('default', task.lease.id);
      expect([...stored.checkpoints]).toEqual([['note:log', Buffer.from('1')]]);
    });
  });
}
