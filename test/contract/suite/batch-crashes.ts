import { describe, expect } from 'vitest';
import { CHUNK_SECONDS } from '../../../lib/broker/batches.js';
import { BatchSession, HOME } from '../batch-session.js';
import type { Driver, DriverTest } from '../driver.js';

/** Lets the keepers work for some minutes. */
async function recover(session: BatchSession, minutes = 4): Promise<void> {
  for (let n = 0; n < minutes; n++) {
    session.driver.clock.advance(CHUNK_SECONDS * 1000);
    await session.keep();
  }
}

/** Counts the calls of an adder, and kills it after some of them. */
class Fuse {
  calls = 0;

  constructor(private readonly most: number) {}

  /** `lost`: the last call happens, and its reply is lost. */
  async call<T>(work: () => Promise<T>, session: BatchSession): Promise<T> {
    if (this.calls++ >= this.most) throw new Killed();
    const reply = await work();
    if (this.calls >= this.most) {
      session.lose();
      throw new Killed();
    }
    return reply;
  }
}

class Killed extends Error {}

/** A whole batch by one process that dies after `most` calls. Returns how many it has made. */
async function produce(session: BatchSession, batch: string, most: number): Promise<number> {
  const fuse = new Fuse(most);
  const call = <T>(work: () => Promise<T>): Promise<T> => fuse.call(work, session);
  try {
    await call(() => session.open({ id: batch, closeBy: session.driver.now + 120 }));
    for (const [queue, count] of [
      ['default', 3],
      ['other', 9],
      ['default', 8],
    ] as const) {
      const chunk = await call(() => session.reserve(batch, count, queue));
      await call(() => session.create(chunk));
      await call(() => session.confirm(chunk, count));
    }
    await call(() => session.close(batch));
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
  }
  return fuse.calls;
}

/** Ends all tasks of the queues of `produce`, as a server does whose relay loses every parcel. */
async function work(session: BatchSession): Promise<number> {
  let ran = 0;
  for (const queue of ['default', 'other']) {
    for (const task of await session.driver.take(100, queue)) {
      await session.end(task, 'done');
      session.lose();
      ran++;
    }
  }
  return ran;
}

export function exerciseBatchCrashes(it: DriverTest): void {
  const dead = async (driver: Driver, calls: number): Promise<void> => {
    const session = new BatchSession(driver);
    const batch = `batch-crash${calls}`;
    await produce(session, batch, calls);
    const stored = (await driver.queue()).pending.length + (await driver.queue('other')).pending.length;
    const ran = await work(session);
    expect(ran).toBe(stored);
    await recover(session);
    expect(await session.counts(batch)).toBe(`succeeded ${ran} 0 ${ran} 0`);
    expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
  };

  describe('a batch whose process dies', () => {
    for (let calls = 1; calls <= 11; calls++) {
      it(`after call ${calls} ends all the same, with the members there are`, async ({ driver }) => {
        await dead(driver, calls);
      });
    }

    it('has been tried at each of its calls', async ({ driver }) => {
      expect(await produce(new BatchSession(driver), 'batch-whole', 100)).toBe(11);
    });

    it('refuses the members of a chunk that was given up', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      const chunk = await session.reserve(batch, 3);
      await session.close(batch);
      await session.keep();
      expect(await session.callbacks(batch)).toEqual([]);
      await recover(session);
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
      expect(await driver.broker.batches.add(chunk, session.members(chunk))).toMatchObject({ status: 'void' });
      await session.confirm(chunk, 3);
      expect(await driver.take(5)).toEqual([]);
      expect(await session.counts(batch)).toBe('succeeded 0 0 0 0');
    });

    it('has each member once when the same numbers are used again', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await session.open();
      const chunk = await session.reserve(batch, 10);
      const message = { uniqueKey: 'asynq:{default}:unique:u:' };
      const before = await session.create(chunk, { message, uniqueTtl: 600 });
      expect(before).toEqual(['enqueued', ...Array(9).fill('duplicate')]);
      await session.runNext();
      expect(await session.create(chunk, { message, uniqueTtl: 600 })).toEqual(Array(10).fill('conflict'));
      for (let n = 0; n < 2; n++) await session.confirm(chunk, 1);
      await session.close(batch);
      expect(await session.callbacks(batch)).toEqual(['complete', 'success']);
      expect(await driver.take(5)).toEqual([]);
    });
  });

  describe('parcels of batches', () => {
    const whole = async (session: BatchSession, times: number, lost: boolean): Promise<string> => {
      const carry = async (): Promise<void> => (lost ? session.lose() : session.relay(times));
      const batch = await session.open();
      for (const queue of ['default', 'other', HOME]) await session.add(batch, 9, queue);
      await carry();
      const died = await session.runNext('archive');
      await carry();
      await session.close(batch);
      await carry();
      for (const queue of ['default', 'other', HOME]) {
        for (const task of await session.driver.take(9, queue)) {
          await session.end(task, 'done');
          await carry();
        }
      }
      await recover(session, 3);
      expect(await session.callbacks(batch)).toEqual(['complete', 'death']);
      await session.act('run', died);
      await session.runNext();
      await carry();
      await recover(session, 3);
      return batch;
    };

    it.for([
      { how: 'in order', times: 1, lost: false },
      { how: 'three times, and in no order', times: 3, lost: false },
      { how: 'only by the keeper', times: 1, lost: true },
    ])('that arrive $how bring about the same', async ({ times, lost }, { driver }) => {
      const session = new BatchSession(driver);
      const batch = await whole(session, times, lost);
      expect(await session.callbacks(batch)).toEqual(['complete', 'death', 'success']);
      expect(await session.counts(batch)).toBe('succeeded 27 0 27 0');
    });

    it('that come again late, in any order, change nothing: no callback runs twice', async ({ driver }) => {
      const session = new BatchSession(driver);
      const batch = await whole(session, 1, false);
      const expected = ['complete', 'death', 'success'];
      expect(await session.callbacks(batch)).toEqual(expected);
      const all = [...session.sent];
      for (const parcels of [all, all.toReversed(), all]) {
        for (const parcel of parcels) session.took(await driver.broker.links.deliver(parcel.to, [parcel]));
        expect(await session.callbacks(batch)).toEqual(expected);
      }
      expect(await session.counts(batch)).toBe('succeeded 27 0 27 0');
      session.driver.clock.advance(7_200_000);
      await recover(session);
      expect(await session.counts(batch)).toBe('no such batch');
      for (const parcel of all) session.took(await driver.broker.links.deliver(parcel.to, [parcel]));
      expect(await session.callbacks(batch)).toEqual(expected);
    });
  });
}
