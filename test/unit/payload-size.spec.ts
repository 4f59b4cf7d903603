import { describe, expect, it } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { ManualClock } from '../../lib/clock.js';
import { InvalidOptionError, InvalidTaskError } from '../../lib/errors.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { AsynqScheduler } from '../../lib/scheduler/scheduler.js';
import { requirePayloadSize } from '../../lib/task/payload-size.js';
import { resolveModuleOptions } from '../../lib/nest/connection/asynq-module.options.js';
import { rig } from '../support/server-rig.js';

const most = 100;
const fits = Buffer.alloc(most, 1);
const tooLarge = Buffer.alloc(most + 1, 1);
const refusal = /has 101 bytes; the most is 100 \(maxPayloadSize\)\. Store large data elsewhere/;

const setUp = () => new MemoryBroker(new ManualClock(), { maxPayloadSize: most });

describe('a payload beyond maxPayloadSize', () => {
  it('is refused by enqueue and enqueueMany, before anything is written', async () => {
    const broker = setUp();
    const client = new AsynqClient(broker);
    await expect(client.enqueue('t', tooLarge)).rejects.toThrow(InvalidTaskError);
    await expect(client.enqueue('t', 'x'.repeat(99))).rejects.toThrow(refusal); // with its quotes
    await expect(client.enqueue('t', tooLarge, { processIn: '1h', unique: '1h' })).rejects.toThrow(refusal);
    expect(await broker.inspection.queues()).toEqual([]);
    const [bad, good] = await client.enqueueMany('t', [tooLarge, fits]);
    expect(bad?.error).toEqual(expect.objectContaining({ message: expect.stringMatching(refusal) }));
    expect(good?.ok).toBe(true);
    expect((await broker.inspection.describeQueue('default')).pending).toBe(1);
  });

  it('is 5 MiB by default', async () => {
    const client = new AsynqClient(new MemoryBroker(new ManualClock()));
    const mebibytes = 1024 * 1024;
    expect((await client.enqueue('t', Buffer.alloc(5 * mebibytes))).payload).toHaveLength(5 * mebibytes);
    await expect(client.enqueue('t', Buffer.alloc(5 * mebibytes + 1))).rejects.toThrow('the most is 5242880');
  });

  it('is refused for a periodic task', async () => {
    const scheduler = new AsynqScheduler(setUp(), new AsynqEvents());
    expect(() => scheduler.register('@daily', 't', tooLarge)).toThrow(refusal);
  });

  it('is counted in bytes, also where it is still text', () => {
    for (const text of ['x'.repeat(most), 'ä'.repeat(50), '€'.repeat(33), '\u{1f680}'.repeat(25)]) {
      expect(requirePayloadSize(text, most, 'text')).toBe(text);
    }
    for (const text of ['x'.repeat(101), `${'ä'.repeat(50)}x`, `${'€'.repeat(33)}xx`]) {
      expect(() => requirePayloadSize(text, most, 'text')).toThrow(refusal);
    }
  });

  it('does not replace another', async () => {
    const broker = setUp();
    const client = new AsynqClient(broker);
    const inspector = new AsynqInspector(broker);
    const { id } = await client.enqueue('t', fits);
    await expect(inspector.updateTaskPayload('default', id, tooLarge)).rejects.toThrow(refusal);
    expect((await inspector.getTaskInfo('default', id))?.payload).toEqual(fits);
  });

  it('is no result: returned, it is dropped and reported; written, it is refused', async () => {
    const large = Buffer.alloc(5 * 1024 * 1024 + 1);
    const refused: unknown[] = [];
    const { memory, server, add, finished, events } = rig({
      return: () => large,
      write: async (task) => task.writeResult(large).catch((error: unknown) => void refused.push(error)),
    });
    const returning = await add({ type: 'return', retention: 60 });
    const writing = await add({ type: 'write', retention: 60 });
    await server.start();
    await finished(2);
    await server.shutdown();
    const dropped = events.filter(({ name }) => name === 'resultDropped').map(({ event }) => event);
    expect(dropped).toMatchObject([{ error: { message: expect.stringMatching(/^the result has 5242881 bytes/) } }]);
    expect(refused).toEqual([expect.any(InvalidTaskError)]);
    for (const { id } of [returning, writing]) {
      expect(await memory.inspection.getTask('default', id)).toMatchObject({ state: 'completed', result: undefined });
    }
  });

  it.each([0, -1, 1.5, Infinity, '5MB', 2 ** 30])('is no limit: %s', (maxPayloadSize) => {
    expect(() => resolveModuleOptions({ connection: 'memory', maxPayloadSize: maxPayloadSize as number })).toThrow(
      InvalidOptionError,
    );
    expect(() => new MemoryBroker(new ManualClock(), { maxPayloadSize: maxPayloadSize as number })).toThrow(
      /maxPayloadSize \(bytes\) must be a whole number from 1 to 536870912/,
    );
  });
});
