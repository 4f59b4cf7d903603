import { describe, expect } from 'vitest';
import { message, request } from '../../support/messages.js';
import { type DriverTest, archival, completion, done, expectUnchanged, retrial } from '../driver.js';

const EVERY_BYTE = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256));

const ODD_NAMES = [
  'with space',
  'a:b:t:c',
  '日本語 🎉 é',
  '{braces}',
  'tab\tand\nline',
  '"quoted\' \\',
  '__proto__',
  '%[*?]',
  '0',
];

export function exerciseBytes(it: DriverTest): void {
  describe('bytes and names', () => {
    it('keep every byte of payload and result', async ({ driver }) => {
      const task = await driver.takeNew({ payload: EVERY_BYTE });
      expect(task.message.payload.equals(EVERY_BYTE)).toBe(true);
      await driver.broker.consumer.writeResult(task.lease, EVERY_BYTE);
      await driver.settle(retrial(task, driver.now));
      const stored = await driver.broker.inspection.getTask('default', task.lease.id);
      expect(stored?.message.payload.equals(EVERY_BYTE)).toBe(true);
      expect(stored?.result?.equals(EVERY_BYTE)).toBe(true);
      expect(Buffer.isBuffer(stored?.message.payload)).toBe(true);
    });

    it('keep a payload of a megabyte, and an empty one', async ({ driver }) => {
      const large = Buffer.alloc(1_000_000, EVERY_BYTE);
      expect((await driver.takeNew({ payload: large })).message.payload.equals(large)).toBe(true);
      expect((await driver.takeNew({ payload: Buffer.alloc(0) })).message.payload).toHaveLength(0);
    });

    it('copy what the caller passes, and return copies of what they store', async ({ driver }) => {
      const given = request({ id: 'a', payload: Buffer.from('before') });
      await driver.enqueue([given]);
      given.message.payload.write('after!');
      const task = await driver.takeOne();
      expect(task.message.payload.toString()).toBe('before');
      task.message.payload.write('after!');
      const result = Buffer.from('result');
      await driver.broker.consumer.writeResult(task.lease, result);
      result.write('after!');
      const stored = await driver.broker.inspection.getTask('default', 'a');
      expect(stored?.message.payload.toString()).toBe('before');
      expect(stored?.result?.toString()).toBe('result');
      stored?.result?.write('after!');
      expect((await driver.broker.inspection.getTask('default', 'a'))?.result?.toString()).toBe('result');
    });

    it('keep every field of a message through the states that rewrite it', async ({ driver }) => {
      const full = message({
        type: 'a:b c',
        payload: EVERY_BYTE,
        maxRetry: 2 ** 31 - 1,
        retried: 3,
        errorMsg: 'é\n\u0000',
        timeout: Number.MAX_SAFE_INTEGER - 1,
        deadline: -1,
        lastFailedAt: 1_700_000_000,
        retention: 5,
        completedAt: 6,
        headers: { '': '', k: 'v', __proto: 'p' },
        unknownFields: Buffer.from([0x98, 0x06, 0x2a]),
      });
      await driver.enqueue([{ message: full }]);
      const task = await driver.takeOne();
      const { headers, ...rest } = full;
      expect(task.message).toMatchObject(rest);
      expect({ ...task.message.headers }).toEqual(headers);
      await driver.settle(completion(task, driver.now + 5));
      expect((await driver.broker.inspection.getTask('default', full.id))?.message).toEqual(task.message);
    });

    it('write half a surrogate pair as U+FFFD everywhere', async ({ driver }) => {
      const half = request({ id: 'x\ud800', type: '\udc00t', headers: { h: '\ud83d' } });
      expect(await driver.enqueue([half])).toEqual(['enqueued']);
      expect(await driver.enqueue([request({ id: 'x\ufffd' })])).toEqual(['conflict']);
      const task = await driver.takeOne();
      expect(task.lease.id).toBe('x\ufffd');
      expect(task.message).toMatchObject({ id: 'x\ufffd', type: '\ufffdt' });
      expect({ ...task.message.headers }).toEqual({ h: '\ufffd' });
      const error = { ...task.message, errorMsg: 'cut \ud83d' };
      expect(await driver.settle(archival({ ...task, message: error }))).toEqual(['settled']);
      expect((await driver.broker.inspection.getTask('default', 'x\ud800'))?.message.errorMsg).toBe('cut \ufffd');
    });

    it.for(ODD_NAMES)('allow %j as id, queue and group', async (name, { driver }) => {
      await driver.add({ id: name, queue: name });
      await driver.add({ id: `${name}2`, queue: name, groupKey: name });
      await driver.add({ id: `${name}3`, queue: name }, { processAt: driver.now + 5 });
      expect(await driver.broker.inspection.queues()).toEqual([name]);
      const task = await driver.takeOne(name);
      expect(task.lease).toEqual({ queue: name, id: name, expiresAt: driver.now + 30 });
      expect((await driver.queue(name)).groupNames).toEqual([name]);
      expect(await driver.broker.consumer.extendLeases(name, [task.lease], driver.now + 40)).toEqual([true]);
      const stale = { ...task, lease: { ...task.lease, expiresAt: 1 } };
      await expectUnchanged(driver, async () => expect(await driver.settle(done(stale))).toEqual(['lost']));
      expect(await driver.settle(done(task))).toEqual(['settled']);
      expect(await driver.broker.inspection.getTask(name, name)).toBeUndefined();
    });
  });
}
