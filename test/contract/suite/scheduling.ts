import { describe, expect } from 'vitest';
import fc from 'fast-check';
import type { Firing, FiringReply } from '../../../lib/broker/scheduling.js';
import type { SchedulerEntry } from '../../../lib/wire/message.js';
import { request, uniqueId } from '../../support/messages.js';
import { type Driver, type DriverTest, archival, completion, done, expectUnchanged, retrial } from '../driver.js';
import { LinkSession } from '../link-session.js';

const YEAR = 365 * 86_400;

function firing(scheduledFor: number, changes: Partial<Firing> = {}): Firing {
  const common = { entry: 'e', attempt: uniqueId('attempt'), skipUnfinished: false, keepFor: YEAR };
  return { ...common, scheduledFor, request: request(), ...changes };
}

const dealt = (status: FiringReply['status'], time: number): FiringReply => ({
  status,
  handledUntil: time,
  lastFiredAt: time,
});

const entry = (id: string): SchedulerEntry => ({
  id,
  spec: '@daily',
  taskType: 'report',
  taskPayload: Buffer.from([0, 255]),
  enqueueOptions: ['Queue("low")'],
  nextEnqueueTime: 1_700_000_000_000,
  prevEnqueueTime: undefined,
});

export function exerciseScheduling(it: DriverTest): void {
  const fire = (driver: Driver, scheduledFor: number, changes?: Partial<Firing>): Promise<FiringReply> =>
    driver.broker.scheduling.fire('default', firing(scheduledFor, changes));
  const open = (driver: Driver, spec = 's') => driver.broker.scheduling.openSchedule('default', 'e', spec, YEAR);

  describe('an entry', () => {
    it('starts when it is first opened, whoever opens it again', async ({ driver }) => {
      const { now } = driver;
      expect(await open(driver)).toEqual({ handledUntil: now, lastFiredAt: undefined });
      driver.clock.advance(5_000);
      expect(await open(driver)).toEqual({ handledUntil: now, lastFiredAt: undefined });
      await fire(driver, now + 3);
      expect(await open(driver)).toEqual({ handledUntil: now + 3, lastFiredAt: now + 3 });
    });

    it('starts again with another spec, but never goes back', async ({ driver }) => {
      const { now } = driver;
      await open(driver, 'old');
      driver.clock.advance(5_000);
      expect(await open(driver, 'new')).toEqual({ handledUntil: now + 5, lastFiredAt: undefined });
      await fire(driver, now + 60);
      expect((await open(driver, 'old')).handledUntil).toBe(now + 60);
    });
  });

  describe('a planned time of a task with links', () => {
    const MARK = { type: 'pay', key: 'k' };

    it('creates it once: it waits, and its end is remembered', async ({ driver }) => {
      const session = new LinkSession(driver);
      const report = session.waiting('report', [MARK], { mark: { type: 'report', key: 'k', rememberFor: YEAR } });
      const planned = firing(driver.now + 1, { request: report });
      for (let time = 0; time < 2; time++) {
        const reply = session.took(await driver.broker.scheduling.fire('default', planned));
        expect(reply).toMatchObject({ status: 'enqueued', handledUntil: driver.now + 1 });
      }
      await session.expectToWaitAndBeRemembered('report', 'report');
    });

    it('is kept when a process dies before it has carried the parcels', async ({ driver }) => {
      const session = new LinkSession(driver);
      await session.enqueue(session.marked('a', 'k', { queue: 'other' }));
      await session.runNext('done', 'other');
      await session.relay();
      const report = session.waiting('report', [MARK]);
      session.took(await driver.broker.scheduling.fire('default', firing(driver.now + 1, { request: report })));
      session.lose();
      driver.clock.advance(10_000);
      await session.keep();
      expect(await session.stateOf('report')).toBe('pending');
    });

    it('skips the next while that waits, and is refused for its lock', async ({ driver }) => {
      const session = new LinkSession(driver);
      const message = { uniqueKey: 'asynq:{default}:unique:u:' };
      const make = (id: string) => session.waiting(id, [MARK], { message, uniqueTtl: 60 });
      const { now } = driver;
      expect(await fire(driver, now + 1, { request: make('a') })).toMatchObject({ status: 'enqueued' });
      expect((await driver.queue()).locks[message.uniqueKey]).toMatchObject({ owner: 'a' });
      const next = { request: make('b'), skipUnfinished: true };
      expect(await fire(driver, now + 2, next)).toMatchObject({ status: 'unfinished', handledUntil: now + 2 });
      expect(await fire(driver, now + 3, { request: make('b') })).toMatchObject({ status: 'duplicate' });
      const same = session.waiting('a', [MARK]);
      expect(await fire(driver, now + 4, { request: same })).toMatchObject({ status: 'conflict' });
      expect(await driver.broker.inspection.getTask('default', 'b')).toBeUndefined();
    });
  });

  describe('a planned time', () => {
    it('is handled once, and no earlier time after it', async ({ driver }) => {
      const { now } = driver;
      expect(await fire(driver, now + 2)).toEqual(dealt('enqueued', now + 2));
      await expectUnchanged(driver, async () => {
        expect(await fire(driver, now + 2)).toEqual(dealt('past', now + 2));
        expect(await fire(driver, now + 1)).toEqual(dealt('past', now + 2));
      });
      expect(await fire(driver, now + 3)).toEqual(dealt('enqueued', now + 3));
      expect((await driver.queue()).pending).toHaveLength(2);
    });

    it('returns the same when the reply was lost and the call is sent again', async ({ driver }) => {
      const again = firing(driver.now + 1);
      expect(await driver.broker.scheduling.fire('default', again)).toEqual(dealt('enqueued', driver.now + 1));
      await expectUnchanged(driver, async () => {
        expect(await driver.broker.scheduling.fire('default', again)).toEqual(dealt('enqueued', driver.now + 1));
      });
    });

    it('of one entry does not affect other entries or queues', async ({ driver }) => {
      const { broker, now } = driver;
      expect((await fire(driver, now + 9)).status).toBe('enqueued');
      expect((await fire(driver, now + 1, { entry: 'other' })).status).toBe('enqueued');
      const elsewhere = firing(now + 1, { request: request({ queue: 'low' }) });
      expect((await broker.scheduling.fire('low', elsewhere)).status).toBe('enqueued');
    });

    it('creates the task as an enqueue does', async ({ driver }) => {
      const { now } = driver;
      const requests = [
        request(),
        request({ uniqueKey: 'asynq:{default}:unique:u:' }, { uniqueTtl: 60 }),
        request({}, { processAt: now + 60 }),
        request({ groupKey: 'g' }),
        request({ groupKey: 'g', uniqueKey: 'asynq:{default}:unique:v:' }, { uniqueTtl: 60 }),
        request({ uniqueKey: 'asynq:{default}:unique:w:' }, { uniqueTtl: 60, processAt: now + 60 }),
        request({ groupKey: 'h' }, { processAt: now + 60 }),
        request({ groupKey: 'h', uniqueKey: 'asynq:{default}:unique:x:' }, { uniqueTtl: 60, processAt: now + 60 }),
      ];
      for (const [index, one] of requests.entries()) {
        expect((await fire(driver, now + 1 + index, { request: one })).status).toBe('enqueued');
      }
      const fired = await driver.queue();
      await driver.broker.producer.enqueue(
        'plain',
        requests.map((one) => ({
          ...one,
          message: { ...one.message, queue: 'plain', uniqueKey: one.message.uniqueKey.replace('default', 'plain') },
        })),
      );
      const plain = await driver.queue('plain');
      for (const name of ['pending', 'scheduled', 'groups', 'groupNames'] as const) {
        expect(fired[name]).toEqual(plain[name]);
      }
      const withoutQueue = ({ tasks }: typeof plain): unknown =>
        JSON.parse(JSON.stringify(tasks).replaceAll('plain', 'default'));
      expect(withoutQueue(fired)).toEqual(withoutQueue(plain));
      expect(Object.keys(fired.locks)).toHaveLength(4);
      expect(await driver.broker.inspection.queues()).toContain('default');
    });

    it('counts as handled when its task is a duplicate or its id is taken', async ({ driver }) => {
      const { now } = driver;
      const uniqueKey = 'asynq:{default}:unique:u:';
      const unique = () => request({ uniqueKey, id: 'u' }, { uniqueTtl: 60 });
      expect((await fire(driver, now + 1, { request: unique() })).status).toBe('enqueued');
      expect(await fire(driver, now + 2, { request: unique() })).toEqual(dealt('duplicate', now + 2));
      expect(await fire(driver, now + 3, { request: request({ id: 'u' }) })).toEqual(dealt('conflict', now + 3));
      expect((await fire(driver, now + 3)).status).toBe('past');
      expect((await driver.queue()).pending).toEqual(['u']);
    });

    it('creates no task while the last one is unfinished, when that is asked for', async ({ driver }) => {
      const { now } = driver;
      let scheduledFor = now;
      const attempt = async () => (await fire(driver, ++scheduledFor, { skipUnfinished: true })).status;
      expect(await attempt()).toBe('enqueued');
      expect(await attempt()).toBe('unfinished');
      const task = await driver.takeOne();
      expect(await attempt()).toBe('unfinished');
      await driver.settle(retrial(task, now));
      expect(await attempt()).toBe('unfinished');
      await driver.broker.maintenance.forward('default');
      await driver.settle(done(await driver.takeOne()));
      for (const settle of [
        (one: Awaited<ReturnType<Driver['takeOne']>>) => completion(one, now + 600),
        (one: Awaited<ReturnType<Driver['takeOne']>>) => archival(one),
      ]) {
        expect(await attempt()).toBe('enqueued');
        await driver.settle(settle(await driver.takeOne()));
      }
      expect(await attempt()).toBe('enqueued');
      expect((await fire(driver, ++scheduledFor)).status).toBe('enqueued');
    });

    it('fires once whatever the clocks and the order of the processes', async ({ driver }) => {
      let serial = 0;
      // Each process tries the planned times up to its own time, in order; the processes take turns
      // at random.
      const attempts = fc.array(fc.tuple(fc.nat(3), fc.integer({ min: -4, max: 4 })), { minLength: 1, maxLength: 30 });
      await fc.assert(
        fc.asyncProperty(attempts, async (turns) => {
          const name = `p${++serial}`;
          const fired: number[] = [];
          const lastFired = [driver.now, driver.now, driver.now, driver.now];
          for (const [turn, [process, skew]] of turns.entries()) {
            const seen = driver.now + turn + skew;
            while (lastFired[process]! < seen) {
              const scheduledFor = lastFired[process]! + 1;
              const reply = await fire(driver, scheduledFor, { entry: name });
              if (reply.status === 'enqueued') fired.push(scheduledFor);
              lastFired[process] = reply.handledUntil;
            }
          }
          const last = Math.max(driver.now, ...lastFired);
          expect(fired).toEqual(Array.from({ length: last - driver.now }, (_, index) => driver.now + 1 + index));
        }),
        { numRuns: 25 },
      );
    });
  });

  describe('a pause', () => {
    const pause = ({ broker }: Driver) => broker.scheduling.pauseSchedule('default', 'e');
    const resume = ({ broker }: Driver) => broker.scheduling.resumeSchedule('default', 'e');
    const read = ({ broker }: Driver) => broker.scheduling.readPause('default', 'e');

    it('needs an entry that a process has opened', async ({ driver }) => {
      await expectUnchanged(driver, async () => {
        expect(await pause(driver)).toBe('unknown');
        expect(await resume(driver)).toBe('unknown');
        expect(await read(driver)).toEqual({ known: false, pausedAt: undefined });
      });
      await open(driver);
      expect(await read(driver)).toEqual({ known: true, pausedAt: undefined });
      expect(await resume(driver)).toBe('same');
    });

    it('has planned times dealt with, without a task, and keeps its begin', async ({ driver }) => {
      const { now } = driver;
      await open(driver);
      await fire(driver, now + 1);
      expect(await pause(driver)).toBe('changed');
      driver.clock.advance(5_000);
      expect(await pause(driver)).toBe('same');
      expect(await read(driver)).toEqual({ known: true, pausedAt: now });
      const paused = { status: 'paused', handledUntil: now + 5, lastFiredAt: now + 1 };
      const again = firing(now + 5);
      expect(await driver.broker.scheduling.fire('default', again)).toEqual(paused);
      await expectUnchanged(driver, async () => {
        expect(await driver.broker.scheduling.fire('default', again)).toEqual(paused);
        expect(await fire(driver, now + 5)).toEqual({ ...paused, status: 'past' });
      });
      expect((await driver.queue()).pending).toHaveLength(1);
    });

    it('ends for times after the resume only, and outlives another spec', async ({ driver }) => {
      const { now } = driver;
      await open(driver);
      await pause(driver);
      driver.clock.advance(60_000);
      await open(driver, 'new');
      expect(await read(driver)).toEqual({ known: true, pausedAt: now });
      expect(await resume(driver)).toBe('changed');
      expect(await resume(driver)).toBe('same');
      expect(await read(driver)).toEqual({ known: true, pausedAt: undefined });
      driver.clock.advance(60_000);
      expect((await fire(driver, now + 60)).status).toBe('past');
      expect((await fire(driver, now + 61)).status).toBe('enqueued');
    });

    it('skips what was planned before the resume, however late it is dealt with', async ({ driver }) => {
      const { now } = driver;
      await open(driver);
      await pause(driver);
      driver.clock.advance(60_000);
      await resume(driver);
      for (const time of [now + 1, now + 60]) expect((await fire(driver, time)).status).toBe('paused');
      expect(await fire(driver, now + 61)).toEqual(dealt('enqueued', now + 61));
    });

    it('is of one entry', async ({ driver }) => {
      const { now } = driver;
      await open(driver);
      await pause(driver);
      expect((await fire(driver, now + 1, { entry: 'other' })).status).toBe('enqueued');
    });
  });

  describe('published entries', () => {
    it('are what was written last, until they are cleared', async ({ driver }) => {
      const { broker, world } = driver;
      await broker.scheduling.writeSchedulerEntries('h:1:a', [entry('a1')], 20);
      await broker.scheduling.writeSchedulerEntries('h:1:a', [entry('a1'), entry('a2')], 20);
      await broker.scheduling.writeSchedulerEntries(
        'h:2:b',
        [{ ...entry('b1'), prevEnqueueTime: 1_600_000_000_000 }],
        20,
      );
      const ids = async () => (await world.schedulerEntries()).map(({ id }) => id).sort();
      expect(await ids()).toEqual(['a1', 'a2', 'b1']);
      expect(await world.schedulerEntries()).toContainEqual(entry('a1'));
      await broker.scheduling.writeSchedulerEntries('h:2:b', [], 20);
      expect(await ids()).toEqual(['a1', 'a2']);
      await broker.scheduling.clearSchedulerEntries('h:1:a');
      await broker.scheduling.clearSchedulerEntries('h:1:a');
      expect(await ids()).toEqual([]);
    });

    it('have a history of the newest thousand', async ({ driver }) => {
      const { broker, world, now } = driver;
      const events = Array.from({ length: 1005 }, (_, index) => ({
        taskId: `t${index}`,
        enqueueTime: (now + index) * 1000,
      }));
      for (const event of events) await broker.scheduling.recordEnqueueEvent('e', event);
      expect(await world.enqueueEvents('e')).toEqual(events.slice(5));
      expect(await world.enqueueEvents('other')).toEqual([]);
    });
  });
}
