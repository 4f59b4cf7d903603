import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { ManualClock } from '../../lib/clock.js';
import { DuplicateTaskError, TaskIdConflictError } from '../../lib/errors.js';
import type { TaskOptions } from '../../lib/task/options.js';

const NOW = 1_700_000_000_000;

const setUp = () => {
  const broker = new MemoryBroker(new ManualClock(NOW));
  return { broker, clock: broker.clock as ManualClock, client: new AsynqClient(broker) };
};

describe('the client on a broker that stores', () => {
  it('stores what it returns', async () => {
    // Braces are refused in the names of queues, tasks and groups.
    const name = fc.string({ minLength: 1, unit: 'grapheme' }).map((text) => `n${text.replace(/[{}]/g, '')}`);
    const options: fc.Arbitrary<TaskOptions> = fc.record(
      {
        queue: name,
        maxRetry: fc.integer({ min: 0, max: 100 }),
        timeout: fc.oneof(fc.constant(0), fc.integer({ min: 1000, max: 90_000 })),
        deadline: fc.date({ min: new Date(NOW), max: new Date(2 * NOW), noInvalidDate: true }),
        unique: fc.integer({ min: 1000, max: 90_000 }),
        processIn: fc.integer({ min: -1000, max: 90_000 }),
        taskId: name,
        retention: fc.oneof(fc.constant(0), fc.integer({ min: 1000, max: 90_000 })),
        group: name,
        headers: fc.dictionary(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' })),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(name, fc.jsonValue(), options, async (type, payload, given) => {
        const { broker, client } = setUp();
        const info = await client.enqueue(type, payload, given);
        const stored = (await broker.inspection.getTask(info.queue, info.id))!;
        expect(stored.message).toMatchObject({ id: info.id, type, queue: given.queue ?? 'default', retried: 0 });
        expect(JSON.parse(stored.message.payload.toString())).toEqual(JSON.parse(JSON.stringify(payload)));
        expect(stored.state).toBe(info.state);
        expect(stored.message.timeout * 1000).toBe(info.timeout);
        expect(stored.message.retention * 1000).toBe(info.retention);
        expect(stored.message.maxRetry).toBe(info.maxRetry);
        expect({ ...stored.message.headers }).toEqual({ ...info.headers });
        const due = info.state === 'scheduled' ? Math.ceil(info.nextProcessAt!.getTime() / 1000) : undefined;
        expect(stored.nextProcessAt).toBe(due);
      }),
    );
  });

  it('does not wait for timers that a test fakes, even when they were faked before it was loaded', async () => {
    vi.resetModules();
    vi.useFakeTimers();
    try {
      const fresh = await import('../../lib/client/client.js');
      const broker = new MemoryBroker(new ManualClock(NOW));
      const client = new fresh.AsynqClient(broker);
      const enqueue = broker.producer.enqueue.bind(broker.producer);
      let meanwhile: Promise<unknown> | undefined;
      vi.spyOn(broker.producer, 'enqueue').mockImplementation(async (...call) => {
        await null;
        meanwhile ??= client.enqueue('t', 'while a call is under way');
        return enqueue(...call);
      });
      await client.enqueue('t', 'first');
      expect(await meanwhile).toMatchObject({ state: 'pending' });
    } finally {
      vi.useRealTimers();
    }
  });

  it('refuses the second of two unique tasks until the lock ends', async () => {
    const { client, clock } = setUp();
    const unique = { unique: '10s' } as const;
    await client.enqueue('t', { a: 1 }, unique);
    await expect(client.enqueue('t', { a: 1 }, unique)).rejects.toThrow(DuplicateTaskError);
    await client.enqueue('t', { a: 2 }, unique);
    await client.enqueue('t', { a: 1 }, { ...unique, queue: 'other' });
    clock.advance(10_000);
    await expect(client.enqueue('t', { a: 1 }, unique)).resolves.toMatchObject({ state: 'pending' });
  });

  it('lets one of many concurrent unique tasks through', async () => {
    const { client } = setUp();
    const calls = Array.from({ length: 20 }, () => client.enqueue('t', 1, { unique: '1m' }));
    const results = await Promise.allSettled(calls);
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
    const many = await client.enqueueMany('t', [1, 2, 2], { unique: '1m' });
    expect(many.map((result) => result.ok)).toEqual([false, true, false]);
  });

  it('refuses an id that is taken, and prefers the duplicate when both hold', async () => {
    const { client } = setUp();
    await client.enqueue('t', 1, { taskId: 'x', unique: '1m' });
    await expect(client.enqueue('t', 2, { taskId: 'x' })).rejects.toThrow(TaskIdConflictError);
    await expect(client.enqueue('t', 1, { taskId: 'x', unique: '1m' })).rejects.toThrow(DuplicateTaskError);
  });
});
