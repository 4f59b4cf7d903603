import { describe, expect, it, onTestFinished } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import type { AsynqClientOptions, ClientHooks } from '../../lib/client/client-options.js';
import type { EnqueueOptions } from '../../lib/client/types.js';
import { ManualClock } from '../../lib/clock.js';
import { AcknowledgeTimeoutError, DuplicateTaskError, InvalidTaskError, QueueFullError } from '../../lib/errors.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { defineTask } from '../../lib/task/definition.js';
import { workflow } from '../../lib/workflows/workflow.js';
import { FakeProducerBroker } from '../support/producer-broker.js';

function setUp(options: AsynqClientOptions = {}, hooks: ClientHooks = {}) {
  const broker = new MemoryBroker(new ManualClock());
  const client = new AsynqClient(broker, options, hooks);
  onTestFinished(() => client.close());
  return { broker, client };
}

const Kept = defineTask<number>('kept', { key: String, rememberFor: '1h' });

/** The options of the table in docs/uniqueness.md. */
const MODES: readonly EnqueueOptions<unknown>[] = [
  { unique: '1h' },
  { unique: { for: '1h', onDuplicate: 'existing' } },
  { unique: { for: '1h', onDuplicate: 'replace' } },
  { key: 'k', once: '1h' },
  { key: 'k', debounce: { wait: '5s' } },
  { key: 'k', throttle: '1m' },
  { key: 'k', latest: true },
  { key: 'k', supersede: true },
];

describe('a task with a policy for repeats', () => {
  it.each(MODES)('is acknowledged: %o', async (mode) => {
    const { client, broker } = setUp();
    const { enqueue } = broker.uniqueness;
    let isEnough = true;
    broker.uniqueness.enqueue = async (queue, requests, bounds) => ({
      ...(await enqueue.call(broker.uniqueness, queue, requests, bounds)),
      copies: bounds?.acknowledge && { replicas: 0, disk: false, isEnough },
    });
    const { enqueueAcknowledged } = broker.producer;
    broker.producer.enqueueAcknowledged = async (...call) => ({
      ...(await enqueueAcknowledged.apply(broker.producer, call)),
      isEnough,
    });
    const options = { ...mode, acknowledge: { replicas: 1 } };
    const first = await client.enqueue('t', 1, options);
    expect(first.created).toBe(true);
    isEnough = false;
    const again = await client.enqueue('t', 1, options).catch((error: unknown) => error);
    const isRefused = mode.unique === '1h';
    expect(again).toBeInstanceOf(isRefused ? DuplicateTaskError : AcknowledgeTimeoutError);
    if (!isRefused) expect(again).toMatchObject({ task: { id: first.id, created: false } });
    const [other] = await client.enqueueMany('u', [1], options);
    expect(other!.error).toMatchObject({ code: 'ASYNQ_ACKNOWLEDGE_TIMEOUT', task: { created: true } });
    expect(broker.tasks()).toHaveLength(2);
  });

  it.each(MODES)('waits for room, acknowledged or not: %o', async (mode) => {
    const queues = { default: { maxPending: 1 } };
    for (const acknowledge of [false, { replicas: 1 }] as const) {
      const { client, broker } = setUp({ acknowledge, queues } as AsynqClientOptions);
      await client.enqueue('other', 1);
      const call = client.enqueue('t', 1, mode);
      if (mode.debounce) expect(await call).toMatchObject({ state: 'scheduled' });
      else await expect(call).rejects.toBeInstanceOf(QueueFullError);
      expect(broker.tasks()).toHaveLength(mode.debounce ? 2 : 1);
    }
  });
});

describe('acknowledge', () => {
  it('is satisfied at once in memory', async () => {
    const { client, broker } = setUp({ acknowledge: { replicas: 2, disk: true } });
    await client.enqueue('t', 1);
    expect((await client.enqueueMany('t', [1, 2])).every(({ ok }) => ok)).toBe(true);
    expect(broker.tasks()).toHaveLength(3);
  });

  it.each([
    [{ replicas: 0 }, 'acknowledge of task "t": replicas must be a whole number from 1 to 1000, not 0'],
    [{ replicas: 1.5 }, 'replicas must be a whole number'],
    [{ disk: 'yes' }, 'acknowledge of task "t": disk must be true or false, not'],
    [{ timeout: 0 }, 'acknowledge of task "t": timeout must be more than zero and at most 5s, not 0'],
    [{ timeout: '6s' }, 'timeout must be more than zero and at most 5s'],
    [{ replica: 1 }, 'unknown option of acknowledge of task "t": "replica"; did you mean "replicas"?'],
    [true, 'acknowledge of task "t" (options, or false) must be'],
  ])('is refused as %j, before anything is written', async (acknowledge, message) => {
    const { client, broker } = setUp();
    const refused = client.enqueue('t', 1, { acknowledge: acknowledge as never });
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toBeInstanceOf(InvalidTaskError);
    expect(() => defineTask('t', { acknowledge: acknowledge as never })).toThrow(message);
    expect(broker.tasks()).toEqual([]);
  });

  it('is no option of tasks whose enqueue nobody waits for, or that change several places', async () => {
    const { client, broker } = setUp();
    const acknowledge = {};
    await expect(client.enqueue(Kept, 1, { acknowledge })).rejects.toThrow(
      'has acknowledge and after, or key and rememberFor',
    );
    const batch = await client.openBatch({ name: 'b' });
    await expect(batch.add('t', [1], { acknowledge } as never)).rejects.toThrow(
      'a member of a batch cannot have "acknowledge"',
    );
    expect(() => workflow('w').add('a', 't', 1, { options: { acknowledge } as never })).toThrow(
      'unknown task option "acknowledge"',
    );
    expect(broker.tasks()).toEqual([]);
  });

  it('of the client is left out where it cannot be', async () => {
    const { client, broker } = setUp({ acknowledge: {} });
    await client.enqueue(Kept, 1);
    await client.enqueue('t', 1, { throttle: '1m' });
    expect(broker.tasks()).toHaveLength(2);
  });

  it('cannot be asked for in a transaction; that of the client is left out there', async () => {
    const commits: (() => unknown)[] = [];
    const transactions = {
      current: () => ({ afterCommit: (work: () => unknown) => void commits.push(work) }) as never,
    };
    const { client, broker } = setUp({ acknowledge: {} }, { transactions });
    await expect(client.enqueue('t', 1, { acknowledge: {} })).rejects.toThrow(
      'has acknowledge, and is enqueued in a transaction',
    );
    await client.enqueue('t', 1);
    for (const commit of commits) await commit();
    expect(broker.tasks()).toHaveLength(1);
  });

  it('reports a task that is stored and not acknowledged as enqueued', async () => {
    const broker = new FakeProducerBroker();
    const enqueued: string[] = [];
    const events = new AsynqEvents();
    events.on('taskEnqueued', ({ task }) => enqueued.push(task.id));
    const client = new AsynqClient(broker, {}, { events });
    broker.producer.enqueueAcknowledged = async () => ({
      statuses: ['enqueued'],
      replicas: 1,
      disk: false,
      isEnough: false,
    });
    const missed = client.enqueue('t', 1, { taskId: 'a', acknowledge: { replicas: 2, disk: true } });
    await expect(missed).rejects.toThrow(
      'after 2000 ms only these are known to have it: 1 of 2 replicas, not the disk of the master (acknowledge)',
    );
    expect(enqueued).toEqual(['a']);
  });

  it('costs a client without it no other call', async () => {
    const broker = new FakeProducerBroker();
    broker.producer.enqueueAcknowledged = () => Promise.reject(new Error('called'));
    await new AsynqClient(broker).enqueue('t', 1, { acknowledge: false });
    expect(broker.calls).toHaveLength(1);
  });
});
