import { describe, expect } from 'vitest';
import { CHUNK_SECONDS, taskIdOfMember } from '../../../lib/broker/batches.js';
import { BatchSession, CALLS, HOME } from '../batch-session.js';
import type { DriverTest } from '../driver.js';

const MARK = { type: 'pay', key: 'k' };
const DAY = 86_400;
const LOCK = 'asynq:{default}:unique:row:';

export function exerciseBatchLinks(it: DriverTest): void {
  describe('a member that waits', () => {
    it('runs when its prerequisite has succeeded, and counts', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      const { wait } = session.waiting('any', [MARK]);
      expect(await session.add(batch, 9, 'default', { wait })).toEqual(Array(9).fill('enqueued'));
      await session.close(batch);
      await session.relay();
      expect(await session.stateOf(taskIdOfMember(batch, 8))).toBe('waiting');
      expect(await session.counts(batch)).toBe('closed 9 9 0 0');
      expect(await session.callbacks(batch)).toEqual([]);
      await session.enqueue(session.marked('a', 'k', { queue: 'other' }));
      await session.relay();
      await session.run(1, 'done', 'other');
      await session.run(9);
      expect(await session.counts(batch)).toBe('succeeded 9 0 9 0');
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
      await session.batches.delete(HOME, batch);
      driver.clock.advance(2 * DAY * 1000);
      await session.expectNothingKept();
    });

    it('dies when that has failed, and lives when a rerun succeeds', async ({ driver }) => {
      const session = new BatchSession(driver);
      await session.enqueue(session.marked('a', 'k', { queue: 'other' }));
      const batch = await session.open();
      const { wait } = session.waiting('any', [MARK]);
      await session.add(batch, 2, 'default', { wait });
      await session.close(batch);
      await session.relay();
      await session.run(1, 'archive', 'other');
      expect(await session.counts(batch)).toBe('completed 2 0 0 2');
      expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
      await session.act('run', 'a', 'other');
      await session.run(1, 'done', 'other');
      await session.run(2);
      expect(await session.counts(batch)).toBe('succeeded 2 0 2 0');
      expect(await session.callbacks(batch)).toEqual(['complete', 'death', 'success']);
    });

    it('dies when it has waited for as long as it may', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      const { wait } = session.waiting('any', [MARK], { deadline: driver.now + 5 });
      await session.add(batch, 2, 'default', { wait });
      await session.close(batch);
      await session.relay();
      driver.clock.advance(5_000);
      await session.keep();
      expect(await session.counts(batch)).toBe('completed 2 0 0 2');
    });

    it('has ended when an operator deletes it, and runs when one runs it', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      const { wait } = session.waiting('any', [MARK]);
      await session.add(batch, 2, 'default', { wait });
      await session.close(batch);
      await session.relay();
      await session.act('delete', taskIdOfMember(batch, 0));
      await session.act('run', taskIdOfMember(batch, 1));
      await session.run(1);
      expect(await session.counts(batch)).toBe('completed 2 0 1 1');
    });

    it('is not added twice by a call that is sent again', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      const { wait, mark } = session.waiting('any', [MARK], { mark: { ...MARK, type: 'row', rememberFor: DAY } });
      const chunk = await session.reserve(batch, 3);
      expect(await session.create(chunk, { wait, mark })).toEqual(Array(3).fill('enqueued'));
      expect(await session.create(chunk, { wait, mark })).toEqual(Array(3).fill('conflict'));
      driver.clock.advance(CHUNK_SECONDS * 1000);
      await session.keep();
      expect(await session.counts(batch)).toBe('open 3 3 0 0');
    });

    it('is refused for its lock, which it keeps while it waits', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      const { wait } = session.waiting('any', [MARK]);
      const unique = { wait, message: { uniqueKey: LOCK }, uniqueTtl: 60 };
      expect(await session.add(batch, 2, 'default', unique)).toEqual(['enqueued', 'duplicate']);
      expect(await session.add(batch, 1, 'default', unique)).toEqual(['duplicate']);
      await session.close(batch);
      await session.relay();
      expect(await session.counts(batch)).toBe('closed 1 1 0 0');
    });

    it('leaves nothing when none was added', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open({ callbacks: {} });
      const { wait } = session.waiting('any', [MARK]);
      const message = { uniqueKey: LOCK };
      await driver.add({ id: 'holder', ...message }, { uniqueTtl: 60 });
      expect(await session.add(batch, 1, 'default', { wait, message, uniqueTtl: 60 })).toEqual(['duplicate']);
      await session.close(batch);
      await session.run(1);
      expect(await session.counts(batch)).toBe('succeeded 0 0 0 0');
      await session.batches.delete(HOME, batch);
      await session.expectNothingKept();
    });
  });

  describe('a member whose end is remembered', () => {
    it('releases those that wait for its key, before and after', async ({ driver }) => {
      const session = new BatchSession(driver);
      await session.enqueue(session.waiting('b', [MARK], { message: { queue: 'other' } }));
      const batch = await session.open();
      await session.add(batch, 1, 'default', { mark: { ...MARK, rememberFor: DAY } });
      await session.add(batch, 9, 'default', { mark: { type: 'pay', key: 'l', rememberFor: DAY } });
      await session.close(batch);
      await session.relay();
      await session.run(1);
      expect(await session.stateOf('b', 'other')).toBe('pending');
      await session.run(9);
      await session.enqueue(session.waiting('c', [{ type: 'pay', key: 'l' }], { message: { queue: 'other' } }));
      await session.relay();
      expect(await session.stateOf('c', 'other')).toBe('pending');
      expect(await session.counts(batch)).toBe('succeeded 10 0 10 0');
    });
  });

  describe('a callback', () => {
    for (const queue of [HOME, CALLS]) {
      it(`that waits does so from when it is called, in ${queue}`, async ({ driver }) => {
        const session = new BatchSession(driver);
        const success = session.waiting('s', [MARK], { message: { queue }, deadline: driver.now + 100 });
        const batch = await session.open({ callbacks: { success } });
        driver.clock.advance(1_000_000);
        await session.close(batch);
        await session.relay();
        expect(await session.stateOf('s', queue)).toBe('waiting');
        expect((await session.links.waitOf(queue, 's'))?.deadline).toBe(driver.now + 100);
        await session.enqueue(session.marked('a', 'k', { queue: 'other' }));
        await session.relay();
        await session.run(1, 'done', 'other');
        expect(await session.stateOf('s', queue)).toBe('pending');
      });

      it(`whose end is remembered releases who waits for it, in ${queue}`, async ({ driver }) => {
        const session = new BatchSession(driver);
        await session.enqueue(session.waiting('b', [MARK], { message: { queue: 'other' } }));
        const batch = await session.open({ callbacks: { success: session.marked('s', 'k', { queue }) } });
        await session.close(batch);
        await session.relay();
        await session.run(1, 'done', queue);
        expect(await session.stateOf('b', 'other')).toBe('pending');
      });
    }
  });
}
