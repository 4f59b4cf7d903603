import { describe, expect } from 'vitest';
import { CHUNK_SECONDS } from '../../../lib/broker/batches.js';
import { request } from '../../support/messages.js';
import { BatchSession, CALLS, HOME } from '../batch-session.js';
import { type Driver, type DriverTest, expectUnchanged } from '../driver.js';
import { exerciseBatchCrashes } from './batch-crashes.js';
import { exerciseBatchSuccesses } from './batch-successes.js';
import { exerciseBatchLinks } from './batch-links.js';

const later = (driver: Driver, seconds: number): void => driver.clock.advance(seconds * 1000);

export function exerciseBatches(it: DriverTest): void {
  describe('a batch', () => {
    it('calls back when all have succeeded, and not before it is closed', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      expect(await session.counts(batch)).toBe('open 0 0 0 0');
      await session.add(batch, 3);
      expect(await session.counts(batch)).toBe('open 3 3 0 0');
      await session.run(2);
      expect(await session.counts(batch)).toBe('open 3 1 2 0');
      await session.run(1);
      expect(await session.callbacks(batch)).toEqual([]);
      expect(await session.counts(batch)).toBe('open 3 0 3 0');
      expect(await session.close(batch)).toBe('closed');
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
      expect(await session.progress(batch)).toEqual({
        home: HOME,
        id: batch,
        name: 'test',
        state: 'succeeded',
        total: 3,
        pending: 0,
        succeeded: 3,
        failed: 0,
        failedIn: [],
        openedAt: driver.clock.now(),
        endedAt: driver.clock.now(),
      });
    });

    it('waits for members that end after it was closed', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 10);
      await session.close(batch);
      await session.run(9, 'complete');
      expect(await session.callbacks(batch)).toEqual([]);
      expect(await session.counts(batch)).toBe('closed 10 1 9 0');
      await session.run(1);
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
    });

    it('succeeds when it is closed empty', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.close(batch);
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
      expect(await session.counts(batch)).toBe('succeeded 0 0 0 0');
    });

    it('needs no callback', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open({ callbacks: {} });
      await session.add(batch, 1);
      await session.run(1, 'archive');
      await session.close(batch);
      expect(await session.counts(batch)).toBe('completed 1 0 0 1');
      expect(await session.progress(batch)).toMatchObject({ failedIn: ['default'] });
      expect(await session.callbacks(batch)).toEqual([]);
    });

    it('creates a callback as an enqueue does: later, and unique', async ({ driver }) => {
      const session = new BatchSession(driver);
      const uniqueKey = `asynq:{${CALLS}}:unique:u:`;
      const message = { queue: CALLS, uniqueKey, payload: Buffer.from([0, 255, 10]), timeout: 7 };
      const success = request({ ...message, id: 's' }, { processAt: driver.now + 60, uniqueTtl: 600 });
      const batch = await session.open({ callbacks: { success } });
      await session.close(batch);
      await session.relay();
      const stored = await driver.broker.inspection.getTask(CALLS, 's');
      expect(stored).toMatchObject({ state: 'scheduled', nextProcessAt: driver.now + 60 });
      expect(stored?.message).toMatchObject({ payload: message.payload, timeout: 7, uniqueKey });
      expect((await driver.queue(CALLS)).locks[uniqueKey]).toMatchObject({ owner: 's' });
      expect(await driver.broker.inspection.queues()).toContain(CALLS);
    });

    it('lives in the queue of its members and callbacks as well', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open({}, HOME, HOME);
      await session.add(batch, 2, HOME);
      await session.close(batch);
      await session.runNext('archive', HOME);
      const death = await driver.takeOne(HOME);
      expect(death.lease.id).not.toBe(`${batch}~death`);
      await session.end(death, 'done');
      expect(await session.callbacks(batch, HOME)).toEqual(['complete', 'death']);
    });

    it('is closed in time when nobody closes it', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open({ closeBy: driver.now + 60 });
      await session.add(batch, 1);
      await session.run(1);
      later(driver, 59);
      await session.keep();
      expect(await session.counts(batch)).toBe('open 1 0 1 0');
      later(driver, 1);
      await session.keep();
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
    });

    it('is opened once, and closed once', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 1);
      await session.open({ id: batch, name: 'other' });
      expect(await session.progress(batch)).toMatchObject({ name: 'test', total: 1 });
      await Promise.all([session.close(batch), session.close(batch)]);
      await session.run(1);
      expect(await session.close(batch)).toBe('closed');
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
    });

    it('is closed while members are added: they count, or are refused', async ({ driver }) => {
      for (let round = 0; round < 5; round++) {
        const session = new BatchSession(driver);
        const batch = await session.open();
        const reserved = driver.broker.batches.reserve(HOME, batch, [{ queue: 'default', count: 9 }]);
        const [{ status, chunks }] = await Promise.all([reserved, session.close(batch), session.close(batch)]);
        const chunk = chunks[0];
        if (chunk) {
          expect(await session.callbacks(batch)).toEqual([]);
          await session.create(chunk);
          await session.confirm(chunk, 9);
          await session.run(9);
        }
        expect(status).toBe(chunk ? 'reserved' : 'ended');
        expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
        expect(await session.progress(batch)).toMatchObject({ state: 'succeeded', total: chunk ? 9 : 0 });
      }
    });

    it('that does not exist is missing everywhere', async ({ driver }) => {
      const { batches } = driver.broker;
      await expectUnchanged(driver, async () => {
        expect(await batches.reserve(HOME, 'batch-x', [{ queue: 'default', count: 1 }])).toMatchObject({
          status: 'missing',
        });
        expect(await batches.close(HOME, 'batch-x')).toMatchObject({ status: 'missing' });
        expect(await batches.delete(HOME, 'batch-x')).toMatchObject({ status: 'missing' });
        expect(await batches.progress(HOME, 'batch-x')).toBeUndefined();
        expect(await batches.batches(HOME, { offset: 0, size: 5 })).toEqual([]);
        await batches.confirm(HOME, 'batch-x', [{ base: 0, created: 1 }]);
      });
    });

    it('is listed, newest first', async ({ driver }) => {
      const session = new BatchSession(driver);
      const ids: string[] = [];
      for (let n = 0; n < 5; n++) {
        ids.unshift(await session.open());
        later(driver, 1);
      }
      await session.open({}, 'elsewhere');
      const list = async (offset: number, size: number) =>
        (await driver.broker.batches.batches(HOME, { offset, size })).map(({ id }) => id);
      expect(await list(0, 10)).toEqual(ids);
      expect(await list(1, 2)).toEqual(ids.slice(1, 3));
    });
  });

  describe('members', () => {
    it('that died lead to onDeath and onComplete, and to onSuccess when they succeed at last', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 3);
      await session.close(batch);
      const dead = [await session.runNext('archive'), await session.runNext('archive')];
      expect(await session.callbacks(batch)).toEqual(['death']);
      await session.run(1);
      expect(await session.counts(batch)).toBe('completed 3 0 1 2');
      expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
      for (const id of dead) await session.act('run', id);
      expect(await session.counts(batch)).toBe('completed 3 0 1 2');
      await session.run(1);
      expect(await session.counts(batch)).toBe('completed 3 0 2 1');
      await session.run(1, 'archive');
      expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
      await session.act('run', dead[1]!);
      await session.run(1);
      expect(await session.callbacks(batch)).toEqual(['complete', 'death', 'success']);
      expect(await session.counts(batch)).toBe('succeeded 3 0 3 0');
    });

    it('that died before the batch was closed are called then', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 2);
      const dead = await session.runNext('archive');
      expect(await session.callbacks(batch)).toEqual([]);
      await session.act('run', dead);
      await session.run(2);
      expect(await session.counts(batch)).toBe('open 2 0 2 0');
      await session.close(batch);
      expect(await session.callbacks(batch)).toEqual(['complete', 'death', 'success']);
    });

    it('that were archived, revoked or deleted have failed', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 4);
      await session.close(batch);
      const [first, second] = (await driver.queue()).pending as [string, string];
      await session.act('delete', first);
      await session.act('archive', second);
      await session.act('delete', second);
      await session.relay();
      expect(await session.counts(batch)).toBe('closed 4 2 0 2');
      await session.run(1, 'revoke');
      await session.run(1, 'done');
      expect(await session.counts(batch)).toBe('completed 4 0 1 3');
    });

    it('that others have deleted or archived are found by the keeper', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 12);
      await session.close(batch);
      await session.run(2);
      const { pending } = await driver.queue();
      const move = driver.broker.administration;
      await move.moveTasks('default', 'delete', pending.slice(0, 4));
      await move.moveTasks('default', 'archive', pending.slice(4, 8));
      later(driver, 3);
      await session.keep();
      expect(await session.counts(batch)).toBe('closed 12 2 2 8');
      await move.moveTasks('default', 'run', pending.slice(4, 8));
      await session.run(6);
      expect(await session.counts(batch)).toBe('completed 12 0 8 4');
    });

    it('whose queue is deleted have failed', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 2);
      await session.add(batch, 9, 'other');
      await session.close(batch);
      await session.run(2);
      await session.run(3, 'done', 'other');
      expect(await driver.broker.administration.deleteQueue('other', { force: true })).toBe('deleted');
      for (let n = 0; n < 3; n++) {
        later(driver, CHUNK_SECONDS);
        await session.keep();
      }
      expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
      expect(await session.counts(batch)).toMatch(/^completed 11 0 [25] [69]$/);
    });

    it('go on when the home of their batch is deleted, which stays listed until the batch is deleted', async ({
      driver,
    }) => {
      const { administration, inspection } = driver.broker;
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 2);
      await session.close(batch);
      expect(await administration.deleteQueue(HOME, { force: false })).toBe('kept');
      expect(await administration.deleteQueue(HOME, { force: true })).toBe('deleted');
      expect(await inspection.queues()).toContain(HOME);
      await session.run(2);
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
      expect((await driver.broker.batches.delete(HOME, batch)).status).toBe('deleted');
      expect(await administration.deleteQueue(HOME, { force: false })).toBe('deleted');
      expect(await inspection.queues()).not.toContain(HOME);
    });

    it('may be retried before they end', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 1);
      await session.close(batch);
      const { lease, message } = await driver.takeOne();
      await driver.settle({ kind: 'retry', lease, message, retryAt: driver.now, countAsFailure: true });
      expect(await session.counts(batch)).toBe('closed 1 1 0 0');
      await driver.broker.maintenance.forward('default');
      await session.run(1);
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
    });

    it('may be in several queues, scheduled, and unique', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 2, 'a');
      await session.add(batch, 9, 'b', { processAt: driver.now + 60 });
      const unique = { message: { uniqueKey: 'asynq:{c}:unique:u:' }, uniqueTtl: 600 };
      expect(await session.add(batch, 3, 'c', unique)).toEqual(['enqueued', 'duplicate', 'duplicate']);
      expect(await session.add(batch, 1, 'c', unique)).toEqual(['duplicate']);
      await session.close(batch);
      expect(await session.counts(batch)).toBe('closed 12 12 0 0');
      await session.run(2, 'done', 'a');
      await session.run(1, 'done', 'c');
      later(driver, 61);
      await driver.broker.maintenance.forward('b');
      await session.run(8, 'done', 'b');
      expect(await session.callbacks(batch)).toEqual([]);
      await session.run(1, 'done', 'b');
      expect(await session.counts(batch)).toBe('succeeded 12 0 12 0');
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
    });

    it('are tasks like others: they are listed, and say their batch when they are claimed', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      const chunk = await session.reserve(batch, 2, 'new');
      await session.create(chunk, { message: { type: 'row', payload: Buffer.from([0, 255]), timeout: 7 } });
      expect(await driver.broker.inspection.queues()).toContain('new');
      const task = await driver.takeOne('new');
      expect(task.lease.id).toBe(`${batch}~${chunk.base}`);
      expect(task.message).toMatchObject({ type: 'row', payload: Buffer.from([0, 255]), timeout: 7 });
      expect(task.links).toEqual([{ k: 'b', to: HOME, batch }]);
    });

    it('are added by members after the close, until the batch has ended', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 1);
      await session.close(batch);
      const parent = await driver.takeOne();
      await session.add(batch, 2, 'default', {}, true);
      await session.end(parent, 'done');
      expect(await session.callbacks(batch)).toEqual([]);
      await session.run(2);
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
      const late = await driver.broker.batches.reserve(HOME, batch, [{ queue: 'default', count: 1 }], true);
      expect(late).toMatchObject({ status: 'ended', chunks: [] });
      expect(await session.counts(batch)).toBe('succeeded 3 0 3 0');
    });

    it('that had died may still add when they are run again', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 1);
      await session.close(batch);
      const dead = await session.runNext('archive');
      expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
      const late = await driver.broker.batches.reserve(HOME, batch, [{ queue: 'default', count: 1 }]);
      expect(late.status).toBe('ended');
      await session.act('run', dead);
      const parent = await driver.takeOne();
      await session.add(batch, 1, 'default', {}, true);
      await session.end(parent, 'done');
      await session.relay();
      expect(await session.counts(batch)).toBe('closed 2 1 1 0');
      await session.run(1);
      expect(await session.callbacks(batch)).toEqual(['complete', 'death', 'success']);
    });

    it('have numbers beyond a million', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      const requests = Array.from({ length: 2_000 }, () => ({ queue: 'default', count: 500 }));
      const { chunks } = await driver.broker.batches.reserve(HOME, batch, requests);
      const numbers = chunks.flatMap(({ base, count }) => [base, base + count]);
      expect(numbers.every((number, index) => index === 0 || number >= numbers[index - 1]!)).toBe(true);
      const first = chunks[0]!;
      const last = await session.reserve(batch, 500);
      expect(last.base).toBeGreaterThanOrEqual(1_000_000);
      for (const chunk of [first, last]) await session.create(chunk);
      await session.close(batch);
      const tasks = await driver.take(1_000);
      expect(tasks).toHaveLength(1_000);
      const settle = tasks.map(({ lease }) => ({ kind: 'done' as const, lease, uniqueKey: '' }));
      session.took(await driver.exchange(settle, 0));
      expect(await session.counts(batch)).toBe('closed 1000 0 1000 0');
      for (let passes = 0; passes < 5; passes++) {
        later(driver, CHUNK_SECONDS);
        await session.keep();
      }
      expect(await session.counts(batch)).toBe('succeeded 1000 0 1000 0');
    });

    it('of a wrong id, of a group, or too many are refused before anything is written', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      const chunk = await session.reserve(batch, 2);
      const [one, two] = session.members(chunk) as [ReturnType<typeof request>, ReturnType<typeof request>];
      const attempts = [
        [two],
        [one, request()],
        [one, two, request()],
        session.members(chunk, { message: { groupKey: 'g' } }),
      ];
      await expectUnchanged(driver, async () => {
        for (const requests of attempts) {
          await expect(driver.broker.batches.add(chunk, requests)).rejects.toMatchObject({
            code: 'ASYNQ_INVALID_TASK',
          });
        }
        for (const count of [0, 501, 1.5, NaN]) {
          const reserved = driver.broker.batches.reserve(HOME, batch, [{ queue: 'default', count }]);
          await expect(reserved).rejects.toMatchObject({ code: 'ASYNQ_INVALID_TASK' });
        }
        await expect(session.open({ id: 'batch-a~b' })).rejects.toMatchObject({ code: 'ASYNQ_INVALID_TASK' });
        const death = request({ groupKey: 'g' });
        await expect(session.open({ callbacks: { death } })).rejects.toMatchObject({ code: 'ASYNQ_INVALID_TASK' });
      });
    });

    it('whose id is taken are none', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      const chunk = await session.reserve(batch, 2);
      await driver.add({ id: `${batch}~${chunk.base}` });
      expect(await session.create(chunk)).toEqual(['conflict', 'enqueued']);
      await session.confirm(chunk, 1);
      await session.close(batch);
      await session.run(1);
      expect(await session.counts(batch)).toBe('closed 1 1 0 0');
      await session.run(1);
      expect(await session.counts(batch)).toBe('succeeded 1 0 1 0');
    });
  });

  describe('the end of a batch', () => {
    it('leaves nothing after its retention', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open({ retention: 60 });
      await session.add(batch, 2);
      await session.close(batch);
      await session.run(2);
      await session.callbacks(batch);
      later(driver, 59);
      await session.keep();
      expect(await session.counts(batch)).toBe('succeeded 2 0 2 0');
      later(driver, 2);
      await session.keep();
      expect(await session.counts(batch)).toBe('no such batch');
      await session.keep();
      for (const place of await driver.broker.links.places()) {
        expect(await driver.broker.links.keep(place, 0)).toMatchObject({ empty: true });
      }
    });

    it('may be hastened by deleting it, once it has ended', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      await session.add(batch, 2);
      const remove = async () => session.took(await driver.broker.batches.delete(HOME, batch)).status;
      expect(await remove()).toBe('running');
      await session.close(batch);
      expect(await remove()).toBe('running');
      await session.run(1, 'archive');
      await session.run(1, 'complete');
      expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
      expect(await remove()).toBe('deleted');
      await session.relay();
      expect(await remove()).toBe('missing');
      expect(await session.counts(batch)).toBe('no such batch');
      const { archived, completed } = await driver.queue();
      expect([archived.length, completed.length]).toEqual([1, 1]);
      await session.act('run', archived[0]![0]);
      await session.run(1);
      expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
    });
  });

  exerciseBatchCrashes(it);
  exerciseBatchSuccesses(it);
  exerciseBatchLinks(it);
}
