import { describe, expect, it } from 'vitest';
import { LEASE_SECONDS } from '../../lib/broker/broker.js';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { ManualClock, SystemClock } from '../../lib/clock.js';
import { ClosedError } from '../../lib/errors.js';
import type { ServerInfo } from '../../lib/wire/message.js';
import { request } from '../support/messages.js';

const START = 1_750_000_000_000;

const setUp = () => {
  const clock = new ManualClock(START);
  return { clock, broker: new MemoryBroker(clock) };
};

describe('what the memory broker offers beyond the contract', () => {
  it('has defaults and takes options', () => {
    expect(new MemoryBroker()).toMatchObject({ keyPrefix: 'asynq', manual: false });
    expect(new MemoryBroker().clock).toBeInstanceOf(SystemClock);
    expect(new MemoryBroker(new ManualClock(), { keyPrefix: 'p', manual: true })).toMatchObject({
      keyPrefix: 'p',
      manual: true,
    });
  });

  it('take leases a given pending task, from anywhere in the queue and also when paused', async () => {
    const { broker } = setUp();
    await broker.producer.enqueue(
      'q',
      ['a', 'b', 'c'].map((id) => request({ id, queue: 'q' })),
    );
    await broker.administration.pauseQueue('q');
    const task = broker.take('q', 'b');
    expect(task?.lease).toEqual({ queue: 'q', id: 'b', expiresAt: START / 1000 + LEASE_SECONDS });
    expect(task?.message.id).toBe('b');
    expect(broker.take('q', 'b')).toBeUndefined();
    expect(broker.take('q', 'nobody')).toBeUndefined();
    expect(broker.snapshot()['q']).toMatchObject({ pending: ['a', 'c'], active: ['b'] });
    const done = { kind: 'done' as const, lease: task?.lease ?? { queue: 'q', id: '', expiresAt: 0 }, uniqueKey: '' };
    expect((await broker.consumer.exchange('q', { settle: [done], take: 0 })).settled).toEqual(['settled']);
  });

  it('tasks lists the tasks of one queue or of all, in the order of the enqueues', async () => {
    const { broker } = setUp();
    await broker.producer.enqueue('one', [request({ id: 'z', queue: 'one' }), request({ id: 'a', queue: 'one' })]);
    await broker.producer.enqueue('two', [request({ id: 'b', queue: 'two' }, { processAt: START / 1000 + 5 })]);
    expect(broker.tasks('one').map(({ message }) => message.id)).toEqual(['z', 'a']);
    expect(broker.tasks().map(({ message, state }) => [message.id, state])).toEqual([
      ['z', 'pending'],
      ['a', 'pending'],
      ['b', 'scheduled'],
    ]);
    expect(broker.tasks('two')[0]?.nextProcessAt).toBe(START / 1000 + 5);
    expect(broker.tasks('three')).toEqual([]);
  });

  it('snapshot is the same for the same state, and is a copy', async () => {
    const [first, second] = [setUp().broker, setUp().broker];
    const requests = ['a', 'b', 'c'].map((id) => request({ id, uniqueKey: id }, { uniqueTtl: 5 }));
    await first.producer.enqueue('default', requests);
    await second.producer.enqueue('default', [...requests].reverse());
    await second.consumer.exchange('default', { settle: [], take: 0 });
    const [one, other] = [first.snapshot()['default'], second.snapshot()['default']];
    expect(other?.pending).toEqual(['c', 'b', 'a']);
    expect({ ...one, pending: other?.pending }).toEqual(other);
    expect(JSON.stringify(one?.tasks)).toBe(JSON.stringify(other?.tasks));
    const task = first.snapshot()['default']?.tasks['a'];
    task?.message.payload.fill(0);
    expect(first.snapshot()['default']?.tasks['a']?.message.payload).toEqual(requests[0]?.message.payload);
  });

  it('ends a lock at its expiry', async () => {
    const { broker, clock } = setUp();
    const unique = (id: string) => request({ id, uniqueKey: 'lock' }, { uniqueTtl: 5 });
    await broker.producer.enqueue('default', [unique('a')]);
    clock.advance(4999);
    expect(broker.snapshot()['default']?.locks).toEqual({ lock: { owner: 'a', expiresIn: 1 } });
    expect(await broker.producer.enqueue('default', [unique('b')])).toEqual(['duplicate']);
    clock.advance(1);
    expect(broker.snapshot()['default']?.locks).toEqual({});
    expect(await broker.producer.enqueue('default', [unique('b')])).toEqual(['enqueued']);
  });

  it('removes expired locks that no task asks for again', async () => {
    const { broker, clock } = setUp();
    const unique = (index: number) => request({ uniqueKey: `lock${index}` }, { uniqueTtl: 5 });
    for (let round = 0; round < 5; round++) {
      await broker.producer.enqueue(
        'default',
        Array.from({ length: 1000 }, (_, index) => unique(round * 1000 + index)),
      );
      clock.advance(5000);
    }
    await broker.producer.enqueue('default', [unique(9999)]);
    expect(Object.keys(broker.snapshot()['default']?.locks ?? {})).toEqual(['lock9999']);
    expect(broker.store('default').locks.size).toBeLessThan(2100);
  });

  it('lists published servers for the time that they asked for', async () => {
    const { broker, clock } = setUp();
    const info: ServerInfo = {
      host: 'h',
      pid: 1,
      serverId: 's',
      concurrency: 2,
      queues: { default: 1 },
      strictPriority: true,
      status: 'active',
      startTime: START,
      activeWorkerCount: 0,
    };
    await broker.monitoring.writeServerState(info, [], 10);
    await broker.monitoring.writeServerState({ ...info, serverId: 't', status: 'stopped' }, [], 20);
    expect((await broker.publications.servers()).map(({ info: { serverId } }) => serverId)).toEqual(['s', 't']);
    clock.advance(10_000);
    expect(await broker.publications.servers()).toEqual([
      { info: { ...info, serverId: 't', status: 'stopped' }, workers: [] },
    ]);
    await broker.monitoring.clearServerState({ host: 'h', pid: 1, serverId: 't' });
    expect(await broker.publications.servers()).toEqual([]);
  });

  it('wakes no server after it was closed, and reports that it is closed', async () => {
    const { broker } = setUp();
    const received: string[] = [];
    const source = broker.wake.watch({
      onPending: (queue) => void received.push(queue),
      onDelayed: () => {},
      onLost: () => {},
    });
    await source.armPending(['q']);
    const enqueued = broker.producer.enqueue('q', [request({ queue: 'q' })]);
    await broker.close();
    await enqueued;
    expect(received).toEqual([]);
    await expect(source.armPending(['q'])).rejects.toBeInstanceOf(ClosedError);
    const late = broker.wake.watch({ onPending: () => {}, onDelayed: () => {}, onLost: () => {} });
    await expect(late.armDelayed(['q'])).rejects.toBeInstanceOf(ClosedError);
    expect(() => broker.take('q', 'a')).toThrow(ClosedError);
    expect(broker.tasks('q')).toHaveLength(1);
  });
});
