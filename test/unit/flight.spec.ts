import { afterEach, describe, expect, it, vi } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { Flight, MAX_BYTES_IN_FLIGHT } from '../../lib/enqueue/flight.js';
import { BrokerUnavailableError } from '../../lib/errors.js';

afterEach(() => void vi.restoreAllMocks());

describe('bytes under way', () => {
  it('do not wait below the bound, and beyond it calls start in their order', async () => {
    const flight = new Flight(10);
    const started: string[] = [];
    const enter = (name: string, bytes: number) => void flight.enter(bytes)!.then(() => started.push(name));
    expect([flight.enter(4), flight.enter(6)]).toEqual([undefined, undefined]);
    enter('large', 25);
    enter('small', 1); // does not overtake
    flight.leave(4);
    await Promise.resolve();
    expect(started).toEqual([]);
    flight.leave(6);
    await vi.waitFor(() => expect(started).toEqual(['large'])); // alone, whatever its size
    flight.leave(25);
    await vi.waitFor(() => expect(started).toEqual(['large', 'small']));
    flight.leave(1);
    expect(flight.enter(10)).toBeUndefined();
  });

  it('refuses calls that have waited as long as one waits for Redis, when one before them has waited in vain', async () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(1_000);
    const flight = new Flight(10);
    flight.enter(10);
    const early = flight.enter(7)!;
    now.mockReturnValue(2_000);
    const late = flight.enter(7)!;
    now.mockReturnValue(6_500);
    const down = new BrokerUnavailableError('down');
    flight.leave(10, down);
    await expect(early).rejects.toBe(down);
    await late;
    const last = flight.enter(7)!;
    now.mockReturnValue(60_000);
    flight.leave(7, new Error('WRONGTYPE')); // Redis replies: nobody is refused
    await last;
  });

  it('are never more than the bound when many tasks are enqueued at once, and all are stored, in their order', async () => {
    const broker = new MemoryBroker();
    const { enqueue } = broker.producer;
    const payload = Buffer.alloc(1 << 19);
    let [now, most] = [0, 0];
    vi.spyOn(broker.producer, 'enqueue').mockImplementation(async (queue, requests) => {
      const bytes = requests.reduce((sum, { message }) => sum + message.payload.length, 0);
      most = Math.max(most, (now += bytes));
      await new Promise(setImmediate);
      now -= bytes;
      return enqueue.call(broker.producer, queue, requests);
    });
    const client = new AsynqClient(broker);
    const names = Array.from({ length: 100 }, (_, index) => `t${String(index).padStart(3, '0')}`);
    const single = Promise.all(names.map((id) => client.enqueue('bytes', payload, { taskId: id })));
    const bulks = Array.from({ length: 10 }, () => client.enqueueMany('bytes', Array<Buffer>(8).fill(payload)));
    await Promise.all([single, ...bulks]);
    expect(
      broker
        .tasks()
        .slice(0, 100)
        .map(({ message }) => message.id),
    ).toEqual(names);
    expect(broker.tasks()).toHaveLength(180);
    expect(most).toBe(MAX_BYTES_IN_FLIGHT);
    await client.close();
    await broker.close();
  });
});
