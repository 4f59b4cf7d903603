import { describe, expect } from 'vitest';
import type { LeasedTask, Sleep } from '../../../lib/broker/broker.js';
import { MAX_SIGNALS, type StepField } from '../../../lib/broker/checkpoints.js';
import { type Driver, type DriverTest, archival, completion, done, expectQueue, retrial } from '../driver.js';

const sleep = ({ lease }: LeasedTask, wakeAt: number, rest: Partial<Sleep> = {}): Sleep => ({
  kind: 'sleep',
  lease,
  wakeAt,
  ...rest,
});

const APPROVAL = { awaits: [{ signal: 'approval', n: 1 }] };

async function stored({ broker }: Driver, { lease: { queue, id } }: LeasedTask) {
  const { checkpoints, signals } = await broker.checkpoints.read(queue, id);
  return {
    checkpoints: Object.fromEntries([...checkpoints].map(([name, bytes]) => [name, String(bytes)])),
    signals: Object.fromEntries([...signals].map(([name, all]) => [name, all.map(String)])),
  };
}

const signal = ({ broker }: Driver, { lease: { queue, id } }: LeasedTask, payload: string, name = 'approval') =>
  broker.checkpoints.signal(queue, id, name, Buffer.from(payload));

export function exerciseCheckpoints(it: DriverTest): void {
  describe('checkpoints', () => {
    it('are kept with the task until it is deleted', async ({ driver }) => {
      const { checkpoints } = driver.broker;
      const task = await driver.takeNew();
      expect(await stored(driver, task)).toEqual({ checkpoints: {}, signals: {} });
      expect(await checkpoints.write(task.lease, 'a:b#2', Buffer.from('1'))).toBe(true);
      expect(await checkpoints.write(task.lease, 'c', Buffer.alloc(0))).toBe(true);
      await driver.settle(retrial(task, driver.now));
      expect(await stored(driver, task)).toEqual({ checkpoints: { 'a:b#2': '1', c: '' }, signals: {} });
      await driver.broker.maintenance.forward('default');
      const [again] = await driver.take();
      expect(await checkpoints.write(again!.lease, 'c', Buffer.from('2'))).toBe(true);
      expect((await stored(driver, task)).checkpoints).toEqual({ 'a:b#2': '1', c: '2' });
      await driver.settle(done(again!));
      expect(await stored(driver, task)).toEqual({ checkpoints: {}, signals: {} });
    });

    it('are written by whoever has the lease, and nobody else', async ({ driver }) => {
      const { checkpoints } = driver.broker;
      const task = await driver.takeNew();
      await driver.settle({ kind: 'requeue', lease: task.lease });
      expect(await checkpoints.write(task.lease, 'a', Buffer.from('1'))).toBe(false);
      driver.clock.advance(5_000);
      const [again] = await driver.take();
      expect(await checkpoints.write(task.lease, 'a', Buffer.from('1'))).toBe(false);
      expect(await checkpoints.write(again!.lease, 'a', Buffer.from('2'))).toBe(true);
      expect((await stored(driver, task)).checkpoints).toEqual({ a: '2' });
    });

    it('do not bring back a task that is gone', async ({ driver }) => {
      const task = await driver.takeNew();
      await driver.settle(done(task));
      expect(await driver.broker.checkpoints.write(task.lease, 'a', Buffer.from('1'))).toBe(false);
      expect(await signal(driver, task, 'x')).toBe('missing');
      await expectQueue(driver, { active: [], lease: [], tasks: {} });
    });
  });

  describe('the steps of a task, for those who look on', () => {
    const view = async ({ broker }: Driver, { lease: { queue, id } }: LeasedTask, fields: StepField[], most = 100) =>
      (await broker.checkpoints.view(queue, id, fields, most)).map((one) => one && [String(one.bytes), one.size]);

    it('are listed without their values', async ({ driver }) => {
      const { checkpoints } = driver.broker;
      const task = await driver.takeNew();
      const { queue, id } = task.lease;
      expect(await checkpoints.list(queue, id)).toEqual({ steps: [], answers: [], signals: new Map() });
      expect(await checkpoints.list(queue, 'none')).toEqual({ steps: [], answers: [], signals: new Map() });
      await checkpoints.write(task.lease, 'a:b#2', Buffer.from('1'));
      await checkpoints.write(task.lease, 'ü', Buffer.from('2'));
      for (const name of ['approval', 'approval', 'b:1']) await signal(driver, task, 'x', name);
      const { steps, signals } = await checkpoints.list(queue, id);
      expect([...steps].sort()).toEqual(['a:b#2', 'ü']);
      expect(signals).toEqual(
        new Map([
          ['approval', 2],
          ['b:1', 1],
        ]),
      );
    });

    it('are read, but of large values only the first line', async ({ driver }) => {
      const { checkpoints } = driver.broker;
      const task = await driver.takeNew();
      await checkpoints.write(task.lease, 'small', Buffer.from('head\n1'));
      await checkpoints.write(task.lease, 'large', Buffer.from(`head\n${'1'.repeat(200)}`));
      await checkpoints.write(task.lease, 'line', Buffer.from('1'.repeat(200)));
      await checkpoints.write(task.lease, 'empty', Buffer.alloc(0));
      await signal(driver, task, '{"by":"anna"}');
      const fields = ['small', 'large', 'line', 'empty', 'none'].map((step) => ({ step }));
      const approvals = [1, 2].map((n) => ({ signal: 'approval', n }));
      expect(await view(driver, task, [...fields, ...approvals])).toEqual([
        ['head\n1', 6],
        ['head\n', 205],
        ['', 200],
        ['', 0],
        undefined,
        ['{"by":"anna"}', 13],
        undefined,
      ]);
      expect(await view(driver, task, [{ step: 'small' }], 0)).toEqual([['head\n', 6]]);
      expect(await view(driver, task, [{ answer: 'none' }])).toEqual([undefined]);
      expect(await view(driver, task, [])).toEqual([]);
    });

    it('are read in several calls when there are many, or they are large', async ({ driver }) => {
      const task = await driver.takeNew();
      const names = Array.from({ length: 1_100 }, (_, n) => `row#${n + 2}`);
      await Promise.all(names.map((name) => driver.broker.checkpoints.write(task.lease, name, Buffer.from(name))));
      const large = ['one', 'two', 'three'];
      for (const name of large) await driver.broker.checkpoints.write(task.lease, name, Buffer.alloc(2_500_000));
      const fields = [...names, ...large].map((step) => ({ step }));
      const read = await view(driver, task, fields, 10);
      expect(read.slice(0, -3)).toEqual(names.map((name) => [name, name.length]));
      expect(read.slice(-3)).toEqual(large.map(() => ['', 2_500_000]));
    });
  });

  describe('a sleep', () => {
    it('ends when it is due, and counts nothing', async ({ driver }) => {
      const task = await driver.takeNew();
      const checkpoint = { name: 'nap', bytes: Buffer.from([0, 1, 255]) };
      expect(await driver.settle(sleep(task, driver.now + 60, { checkpoint }))).toEqual(['settled']);
      const queue = await driver.queue();
      expect(queue).toMatchObject({
        active: [],
        lease: [],
        pending: [],
        scheduled: [[task.lease.id, driver.now + 60]],
      });
      expect(queue.tasks[task.lease.id]).toMatchObject({ state: 'scheduled', message: task.message });
      expect(queue).toMatchObject({ processed: 0, failed: 0 });
      const steps = await driver.broker.checkpoints.read('default', task.lease.id);
      expect(steps.checkpoints.get('nap')).toEqual(Buffer.from([0, 1, 255]));
      await driver.broker.maintenance.forward('default');
      expect(await driver.take()).toEqual([]);
      driver.clock.advance(60_000);
      await driver.broker.maintenance.forward('default');
      const [again] = await driver.take();
      expect(again?.message).toEqual(task.message);
    });

    it('stores the message that it is given, and else none', async ({ driver }) => {
      const task = await driver.takeNew({ headers: { a: '1' } });
      const message = { ...task.message, headers: {} };
      await driver.settle(sleep(task, driver.now, { message, checkpoint: { name: 'x', bytes: Buffer.from('msg') } }));
      expect((await driver.queue()).tasks[task.lease.id]).toMatchObject({ message, state: 'scheduled' });
      expect((await stored(driver, task)).checkpoints).toEqual({ x: 'msg' });
    });

    it('ends at the signal that it waits for', async ({ driver }) => {
      const task = await driver.takeNew();
      await driver.settle(sleep(task, driver.now + 60, APPROVAL));
      expect(await signal(driver, task, 'other', 'other')).toBe('stored');
      expect((await driver.queue()).scheduled).toHaveLength(1);
      expect(await signal(driver, task, 'yes')).toBe('stored');
      const queue = await driver.queue();
      expect(queue).toMatchObject({ scheduled: [], pending: [task.lease.id] });
      expect(await stored(driver, task)).toEqual({ checkpoints: {}, signals: { approval: ['yes'], other: ['other'] } });
      expect(await driver.take()).toHaveLength(1);
    });

    it('does not begin when the signal is there', async ({ driver }) => {
      const task = await driver.takeNew();
      const next = await driver.add();
      expect(await signal(driver, task, 'yes')).toBe('stored');
      const checkpoint = { name: 'wait', bytes: Buffer.from('1') };
      await driver.settle(sleep(task, driver.now + 60, { ...APPROVAL, checkpoint }));
      const queue = await driver.queue();
      expect(queue).toMatchObject({ scheduled: [], active: [], lease: [] });
      expect((await driver.take(2)).map(({ lease }) => lease.id)).toEqual([task.lease.id, next]);
      expect(await stored(driver, task)).toEqual({ checkpoints: { wait: '1' }, signals: { approval: ['yes'] } });
    });

    it('waits for the second of two signals', async ({ driver }) => {
      const task = await driver.takeNew();
      await signal(driver, task, 'first');
      await driver.settle(sleep(task, driver.now + 60, { awaits: [{ signal: 'approval', n: 2 }] }));
      expect((await driver.queue()).scheduled).toHaveLength(1);
      expect(await signal(driver, task, 'second')).toBe('stored');
      expect((await driver.queue()).pending).toEqual([task.lease.id]);
      expect((await stored(driver, task)).signals).toEqual({ approval: ['first', 'second'] });
      expect(await signal(driver, task, 'third')).toBe('stored');
      expect((await driver.queue()).pending).toEqual([task.lease.id]);
    });

    it('ends at the first of several signals', async ({ driver }) => {
      const awaits = ['a', 'b#1', 'c'].map((signal) => ({ signal, n: 1 }));
      const task = await driver.takeNew();
      await driver.settle(sleep(task, driver.now + 60, { awaits }));
      expect(await signal(driver, task, '', 'b')).toBe('stored');
      expect((await driver.queue()).scheduled).toHaveLength(1);
      expect(await signal(driver, task, '1', 'b#1')).toBe('stored');
      expect((await driver.queue()).pending).toEqual([task.lease.id]);
      const [again] = await driver.take();
      await driver.settle(sleep(again!, driver.now + 60, { awaits }));
      expect((await driver.queue()).pending).toEqual([task.lease.id]);
    });

    it('is over for a signal when the task runs, or was run by hand', async ({ driver }) => {
      const task = await driver.takeNew();
      await driver.settle(sleep(task, driver.now + 60, APPROVAL));
      await driver.broker.administration.moveTasks('default', 'run', [task.lease.id]);
      expect(await signal(driver, task, 'yes')).toBe('stored');
      expect((await driver.queue()).pending).toEqual([task.lease.id]);
      const [again] = await driver.take();
      expect(await signal(driver, task, 'no')).toBe('stored');
      await driver.settle(done(again!));
      await expectQueue(driver, { active: [], lease: [], tasks: {}, pending: [] });
    });
  });

  describe('a signal', () => {
    it('comes too late for a task that is over', async ({ driver }) => {
      const [completed, archived] = [await driver.takeNew(), await driver.takeNew()];
      await driver.settle(completion(completed, driver.now + 60), archival(archived));
      expect(await signal(driver, completed, 'x')).toBe('over');
      expect(await signal(driver, archived, 'x')).toBe('over');
    });

    it('is refused when there are too many of its name', async ({ driver }) => {
      const task = await driver.takeNew();
      const statuses = await Promise.all(
        Array.from({ length: MAX_SIGNALS }, (_, n) => signal(driver, task, String(n))),
      );
      expect(new Set(statuses)).toEqual(new Set(['stored']));
      expect(await signal(driver, task, 'x')).toBe('full');
      expect((await stored(driver, task)).signals['approval']).toHaveLength(MAX_SIGNALS);
      expect(await signal(driver, task, 'x', 'other')).toBe('stored');
    });
  });
}
