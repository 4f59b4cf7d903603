import { describe, expect, it } from 'vitest';
import type { LinksRole } from '../../../lib/broker/links.js';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import { AsynqClient } from '../../../lib/client/client.js';
import { ManualClock } from '../../../lib/clock.js';
import { BrokerUnavailableError, PrerequisiteNotFoundError, TaskIdConflictError } from '../../../lib/errors.js';
import { AsynqEvents } from '../../../lib/events/events.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import { defineTask } from '../../../lib/task/definition.js';

type Call = readonly [name: keyof LinksRole, queue: string, size: number];

/** A client on a broker whose calls about links are recorded, and fail as a test wants. */
function setUp() {
  const broker = new MemoryBroker(new ManualClock(1_700_000_000_000));
  const calls: Call[] = [];
  const faults: Partial<Record<keyof LinksRole, Error>> = {};
  const links = new Proxy(broker.links as LinksRole, {
    get: (target, name: keyof LinksRole) => async (queue: string, items: readonly unknown[]) => {
      calls.push([name, queue, items?.length ?? 0]);
      const fault = faults[name];
      if (fault) throw fault;
      return (target[name] as (...args: unknown[]) => unknown)(queue, items);
    },
  });
  const linked = Object.create(broker, { links: { value: links } }) as MemoryBroker;
  const events = new AsynqEvents();
  return {
    broker,
    calls,
    faults,
    events,
    client: new AsynqClient(linked, {}, { events }),
    inspector: new AsynqInspector(linked),
  };
}

const away = new BrokerUnavailableError('away');

describe('the way of tasks with links', () => {
  it('is not taken by others', async () => {
    const { client, calls } = setUp();
    await client.enqueue('x', {}, { unique: '1m' });
    await client.enqueueMany('x', [1, 2, 3]);
    expect(calls).toEqual([]);
  });

  it('shares calls: one per queue of prerequisites, then one per queue of tasks', async () => {
    const { client, calls } = setUp();
    const a = await client.enqueue('x', {}, { processIn: '1h' });
    const b = await client.enqueue('x', {}, { processIn: '1h', queue: 'low' });
    const made = await Promise.all([1, 2, 3].map((n) => client.enqueue('y', n, { after: [a, b] })));
    expect(made.map(({ state }) => state)).toEqual(['waiting', 'waiting', 'waiting']);
    expect(calls).toEqual([
      ['watch', 'default', 3],
      ['watch', 'low', 3],
      ['enqueue', 'default', 3],
    ]);
    calls.length = 0;
    const results = await client.enqueueMany(
      'y',
      Array.from({ length: 600 }, (_, n) => n),
      { after: a },
    );
    expect(results.every(({ ok }) => ok)).toBe(true);
    expect(calls).toEqual([
      ['watch', 'default', 500],
      ['watch', 'default', 100],
      ['enqueue', 'default', 500],
      ['enqueue', 'default', 100],
    ]);
  });

  it('asks for a thousand prerequisites in bounded calls', async () => {
    const { client, calls, broker } = setUp();
    const all = await client.enqueueMany(
      'x',
      Array.from({ length: 1000 }, (_, n) => n),
      { processIn: '1h' },
    );
    const { id } = await client.enqueue('y', {}, { after: all.map(({ info }) => info!) });
    expect(calls).toEqual([
      ['watch', 'default', 500],
      ['watch', 'default', 500],
      ['enqueue', 'default', 1],
    ]);
    expect((await broker.links.waitOf('default', id))?.edges).toHaveLength(1000);
  });

  it('stores nothing when a prerequisite is missing, and no task for nothing', async () => {
    const { client, calls, broker } = setUp();
    const failure = await client
      .enqueue('y', {}, { after: { queue: 'low', id: 'gone' }, taskId: 'y' })
      .catch((error: unknown) => error as PrerequisiteNotFoundError);
    expect(failure).toBeInstanceOf(PrerequisiteNotFoundError);
    expect(failure).toMatchObject({
      code: 'ASYNQ_PREREQUISITE_NOT_FOUND',
      prerequisite: { queue: 'low', id: 'gone' },
      message: expect.stringMatching(
        /task "y" cannot wait .*"gone".*"low".*retention.*rememberFor.*workflow.*missing/,
      ) as string,
    });
    expect(calls.map(([name]) => name)).toEqual(['watch']);
    expect(broker.tasks()).toEqual([]);
  });

  it.each(['watch', 'enqueue'] as const)('fails as a whole when %s does, and reports it', async (name) => {
    const { client, faults, broker, events } = setUp();
    const first = await client.enqueue('x', {}, { processIn: '1h' });
    faults[name] = away;
    const reported: object[] = [];
    events.on('enqueueFailed', (event) => reported.push(event));
    await expect(client.enqueue('y', {}, { after: first })).rejects.toBe(away);
    const results = await client.enqueueMany('y', [1, 2], { after: first });
    expect(results.map(({ error }) => error)).toEqual([away, away]);
    expect(reported).toEqual([
      { queue: 'default', tasks: 1, error: away },
      { queue: 'default', tasks: 2, error: away },
    ]);
    expect(broker.tasks().map(({ message }) => message.type)).toEqual(['x']);
  });

  it('refuses a taken id and a taken lock, as for any task', async () => {
    const { client } = setUp();
    const Remembered = defineTask<{ id: string }>('r', { key: ({ id }) => id, rememberFor: '1d' });
    const after = await client.enqueue('x', {}, { processIn: '1h', taskId: 'taken' });
    await expect(client.enqueue(Remembered, { id: '1' }, { taskId: 'taken' })).rejects.toThrow(TaskIdConflictError);
    await client.enqueue('y', {}, { after, unique: '1m', waitAtMost: '1h' });
    await expect(client.enqueue('y', {}, { after, unique: '1m' })).rejects.toThrow(/holds the unique lock/);
  });

  it('lets no action of an operator fail because those that wait cannot be told', async () => {
    const { client, faults, inspector, calls } = setUp();
    const { id } = await client.enqueue('x', {});
    faults.check = away;
    await inspector.archiveTask('default', id);
    await inspector.runTask('default', id);
    expect(calls).toEqual([['check', 'default', 1]]);
  });
});
