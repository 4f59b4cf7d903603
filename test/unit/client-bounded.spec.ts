import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import type { AsynqClientOptions } from '../../lib/client/client-options.js';
import { ManualClock } from '../../lib/clock.js';
import { BrokerUnavailableError, InvalidOptionError, QueueFullError } from '../../lib/errors.js';
import { defineTask } from '../../lib/task/definition.js';
import { turn } from '../support/server-rig.js';

const START = 1_700_000_000_000;

function setUp(queues: AsynqClientOptions['queues'] = { default: { maxPending: 2 } }) {
  const clock = new ManualClock(START);
  const broker = new MemoryBroker(clock);
  const client = new AsynqClient(broker, { queues });
  const calls = vi.spyOn(broker.producer, 'enqueueBounded');
  const add = (id: string) => client.enqueue('t', undefined, { taskId: id });
  const ids = () => broker.tasks().map(({ message }) => message.id);
  /** A server takes some. */
  const take = (count: number) => broker.consumer.exchange('default', { settle: [], take: count });
  const pass = async (milliseconds: number) => {
    for (let passed = 0; passed < milliseconds; passed += 10) {
      clock.advance(10);
      await turn(3);
    }
  };
  onTestFinished(() => client.close());
  return { clock, broker, client, calls, add, ids, take, pass };
}

describe('maxPending', () => {
  it('refuses what a full queue has no room for, and says so', async () => {
    const { add, ids, take } = setUp();
    await add('a');
    await add('b');
    const error = await add('c').catch((refused: unknown) => refused);
    expect(error).toBeInstanceOf(QueueFullError);
    expect(error).toMatchObject({ code: 'ASYNQ_QUEUE_FULL', queue: 'default', pending: 2, maxPending: 2, waited: 0 });
    expect((error as Error).message).toBe(
      'queue "default" is full: it has 2 pending tasks, and this client adds none from 2 on (maxPending); enqueue it later, add ' +
        'servers, or set waitForRoom',
    );
    expect(new QueueFullError('q', 1, 1).message).toContain('it has 1 pending task, and');
    expect(ids()).toEqual(['a', 'b']);
    await take(1);
    await add('c');
  });

  it('costs other queues no other call', async () => {
    const { broker, client, calls } = setUp();
    const plain = vi.spyOn(broker.producer, 'enqueue');
    await client.enqueue('t', undefined, { queue: 'other' });
    expect([plain.mock.calls.length, calls.mock.calls.length]).toEqual([1, 0]);
  });

  it('says of each task of enqueueMany whether it was stored', async () => {
    const { client, ids } = setUp();
    const results = await client.enqueueMany('t', [1, 2, 3, 4]);
    expect(results.map(({ ok, error }) => (ok ? 'stored' : (error as QueueFullError).code))).toEqual([
      'stored',
      'stored',
      'ASYNQ_QUEUE_FULL',
      'ASYNQ_QUEUE_FULL',
    ]);
    expect(ids()).toHaveLength(2);
  });

  it('counts tasks with a key that is remembered, and none that is delayed', async () => {
    const { client } = setUp();
    const Kept = defineTask<number>('kept', { key: (payload: number) => `k${payload}`, rememberFor: '1h' });
    await client.enqueueMany(Kept, [1, 2]);
    await expect(client.enqueue(Kept, 3)).rejects.toBeInstanceOf(QueueFullError);
    await client.enqueue('t', 1, { processIn: '1m' });
    await client.enqueue('t', 1, { group: 'g' });
    await client.enqueue(defineTask<number>('t', { after: [{ task: Kept, key: (payload) => `k${payload}` }] }), 1);
  });

  it('does not hold up members of batches and steps of workflows', async () => {
    const { client, ids } = setUp({ default: { maxPending: 1 } });
    const batch = await client.openBatch({ name: 'b' });
    await batch.add('t', [1, 2, 3]);
    expect(ids()).toHaveLength(3);
  });

  it('is not asked about tasks of a transaction that is committed', async () => {
    const clock = new ManualClock(START);
    const broker = new MemoryBroker(clock);
    const commits: (() => unknown)[] = [];
    const transactions = {
      current: () => ({ afterCommit: (work: () => unknown) => void commits.push(work) }) as never,
    };
    const client = new AsynqClient(broker, { queues: { default: { maxPending: 1 } } }, { transactions });
    await client.enqueueMany('t', [1, 2, 3]);
    for (const commit of commits) await commit();
    expect(broker.tasks()).toHaveLength(3);
  });
});

describe('waitForRoom', () => {
  const queues = { default: { maxPending: 2, waitForRoom: '5s' } } as const;

  it('waits, and stores tasks in order as there is room', async () => {
    const { add, ids, take, pass, clock } = setUp(queues);
    await Promise.all([add('a'), add('b')]);
    const order: string[] = [];
    const waiting = ['c', 'd', 'e', 'f'].map((id) => add(id).then(() => order.push(id)));
    await pass(1_000);
    expect([ids(), order]).toEqual([['a', 'b'], []]);
    await take(2);
    await pass(300);
    expect([ids(), order]).toEqual([
      ['a', 'b', 'c', 'd'],
      ['c', 'd'],
    ]);
    const late = add('g');
    await take(2);
    await pass(300);
    expect(order).toEqual(['c', 'd', 'e', 'f']);
    await take(2);
    await pass(300);
    await Promise.all([...waiting, late]);
    expect(clock.now() - START).toBeLessThan(5_000);
  });

  it('is over after its time', async () => {
    const { add, pass, take, ids } = setUp(queues);
    await Promise.all([add('a'), add('b')]);
    const refused = Promise.all(['c', 'd'].map((id) => add(id).catch((error: unknown) => error)));
    await pass(5_300);
    const errors = (await refused) as QueueFullError[];
    expect(errors.map(({ code, pending }) => [code, pending])).toEqual([
      ['ASYNQ_QUEUE_FULL', 2],
      ['ASYNQ_QUEUE_FULL', 2],
    ]);
    expect(errors[0]!.waited).toBeGreaterThanOrEqual(5_000);
    expect(errors[0]!.waited).toBeLessThan(5_300);
    expect(errors[0]!.message).toContain('is full still, after 5');
    expect(errors[0]!.message).toMatch(/add servers, or give it a longer waitForRoom$/);
    await take(2);
    await pass(1_000);
    expect(ids()).toEqual(['a', 'b']); // nothing is stored that was refused
  });

  it('asks for all that wait by one loop, however many they are', async () => {
    const { client, calls, pass, add } = setUp(queues);
    await Promise.all([add('a'), add('b')]);
    const results = client.enqueueMany('t', Array.from({ length: 300 }));
    await turn();
    calls.mockClear();
    await pass(4_000);
    expect(calls.mock.calls.length).toBeLessThan(25);
    expect(calls.mock.calls.every(([, requests]) => requests.length === 1)).toBe(true);
    await pass(1_500);
    expect((await results).every(({ ok }) => !ok)).toBe(true);
  });

  it('takes many at once when there is much room', async () => {
    const { client, broker, calls, pass } = setUp({ default: { maxPending: 500, waitForRoom: '1m' } });
    await client.enqueueMany('t', Array.from({ length: 500 }));
    const results = client.enqueueMany('t', Array.from({ length: 400 }));
    await turn();
    await broker.consumer.exchange('default', { settle: [], take: 500 });
    calls.mockClear();
    await pass(300);
    expect((await results).every(({ ok }) => ok)).toBe(true);
    expect(calls.mock.calls.length).toBeLessThan(12); // 1, 2, 4, …
  });

  it('lets delayed tasks pass those that wait', async () => {
    const { client, add, pass } = setUp(queues);
    await Promise.all([add('a'), add('b')]);
    const waiting = add('c').catch((error: unknown) => error);
    await turn();
    expect(await client.enqueue('t', undefined, { processIn: '1m' })).toMatchObject({ state: 'scheduled' });
    await pass(5_500);
    expect(await waiting).toBeInstanceOf(QueueFullError);
  });

  it('fails those whose call failed, and goes on with the others', async () => {
    const { add, calls, take, pass } = setUp(queues);
    await Promise.all([add('a'), add('b')]);
    const [first, second] = [add('c').catch((error: unknown) => error), add('d')];
    await turn();
    calls.mockRejectedValueOnce(new BrokerUnavailableError('away'));
    await take(2);
    await pass(600);
    expect(await first).toBeInstanceOf(BrokerUnavailableError);
    expect(await second).toMatchObject({ id: 'd' });
  });

  it('is over when the client closes, after a last try', async () => {
    const { add, client, take, ids } = setUp(queues);
    await Promise.all([add('a'), add('b')]);
    const waiting = ['c', 'd'].map((id) => add(id).catch((error: unknown) => error));
    await turn();
    await take(1);
    await client.close();
    expect(await Promise.all(waiting)).toMatchObject([{ id: 'c' }, { code: 'ASYNQ_QUEUE_FULL' }]);
    expect(ids()).toEqual(['a', 'b', 'c']);
  });

  it.each([
    [{ maxPending: 0 }, 'maxPending of queue "default" must be a whole number of at least 1, not 0'],
    [{ maxPending: 1, waitForRoom: -1 }, 'waitForRoom of queue "default" must not be negative, as -1 is; set 0'],
    [{ maxPending: 1, waitForRoom: 'soon' as never }, 'waitForRoom of queue "default"'],
    [{ waitForRoom: 5000 }, 'queue "default" has waitForRoom and no maxPending; give maxPending, or leave both out'],
  ])('is refused as %j', (settings, message) => {
    expect(() => setUp({ default: settings })).toThrow(InvalidOptionError);
    expect(() => setUp({ default: settings })).toThrow(message);
  });
});
