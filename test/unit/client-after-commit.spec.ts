import { describe, expect, it, onTestFinished } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { ManualClock } from '../../lib/clock.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { Scope } from '../../lib/transactions/transactions.js';
import { failingBroker } from '../support/failing-broker.js';

/** Lets every promise callback and next tick that is due run. */
const turn = () => new Promise<void>((done) => setImmediate(done));

/** A client whose calls are in a transaction, on a broker that can be told to fail. */
function setUp() {
  const clock = new ManualClock();
  const memory = new MemoryBroker(clock);
  const { broker, faults } = failingBroker(memory);
  const events = new AsynqEvents();
  const lost: unknown[] = [];
  const refused: unknown[] = [];
  events.on('lostAfterCommit', ({ tasks }) => lost.push(...tasks.map(({ type }) => type)));
  events.on('refusedAfterCommit', ({ task, error }) => refused.push([task.type, error.name]));
  let scope: Scope | undefined = new Scope(() => undefined);
  const begin = () => void (scope = new Scope(() => undefined));
  const client = new AsynqClient(broker, {}, { events, transactions: { current: () => scope } });
  onTestFinished(() => client.close());
  const pending = async () => (await new AsynqInspector(memory).listTasks('default', 'pending')).tasks.length;
  const commit = () => {
    const ended = scope!;
    scope = undefined;
    return ended.commit();
  };
  const inspector = new AsynqInspector(memory);
  return { client, clock, faults, lost, refused, begin, commit, pending, inspector };
}

describe('tasks of a committed transaction', () => {
  it('are sent again until Redis has them', async () => {
    const { client, clock, faults, commit, lost, pending } = setUp();
    faults.set('enqueue', 'before');
    await client.enqueue('a');
    await client.enqueueMany('b', [1, 2]);
    await commit(); // waits for the first try only
    clock.advance(5_000);
    await turn();
    faults.clear();
    clock.advance(5_000);
    await turn();
    expect(await pending()).toBe(3);
    expect(lost).toEqual([]);
  });

  it('are stored once when the reply was lost', async () => {
    const { client, clock, faults, commit, lost, refused, pending } = setUp();
    faults.set('enqueue', 'after');
    await client.enqueue('a');
    await commit();
    faults.clear();
    clock.advance(5_000);
    await turn();
    expect(await pending()).toBe(1);
    expect([...lost, ...refused]).toEqual([]);
  });

  it.for([
    { latest: true },
    { supersede: true },
    { debounce: { wait: '10m' } },
    { unique: { for: '1h', by: 'key', onDuplicate: 'replace' } },
  ] as const)('never take the place of what was committed later: %o', async (option) => {
    const { client, clock, faults, begin, commit, inspector, lost, refused } = setUp();
    faults.set('enqueue', 'before');
    for (const text of ['first', 'second']) {
      await client.enqueue('other', text);
      await client.enqueue('a', text, { key: 'k', ...option });
      await commit(); // fails, and is sent again after a pause
      begin();
    }
    faults.clear();
    await client.enqueue('a', 'third', { key: 'k', ...option });
    await commit();
    for (let seconds = 0; seconds < 60; seconds += 5) {
      clock.advance(5_000);
      await turn();
    }
    const pages = await Promise.all(
      (['pending', 'scheduled'] as const).map((state) => inspector.listTasks('default', state)),
    );
    const stored = pages.flatMap(({ tasks }) => tasks.map(({ type, payload }) => [type, String(payload)]));
    expect(stored.sort()).toEqual([
      ['a', '"third"'],
      ['other', '"first"'],
      ['other', '"second"'],
    ]);
    expect([...lost, ...refused]).toEqual([]);
  });

  it('are sent after those of the transaction that they wait for, whatever their queues', async () => {
    const { client, clock, commit, faults, inspector, lost, refused } = setUp();
    faults.set('enqueue', 'before');
    const first = await client.enqueue('a', 1, { queue: 'other' });
    const second = await client.enqueue('b', 1, { after: first });
    await client.enqueue('c', 1, { queue: 'other', after: [first, second] });
    await commit();
    faults.clear();
    for (let seconds = 0; seconds < 60; seconds += 5) {
      clock.advance(5_000);
      for (let turns = 0; turns < 5; turns++) await turn();
    }
    expect([...lost, ...refused]).toEqual([]);
    expect((await inspector.listTasks('default', 'waiting')).tasks).toMatchObject([{ type: 'b' }]);
    expect((await inspector.listTasks('other', 'waiting')).tasks).toMatchObject([{ type: 'c' }]);
  });

  it('are reported when Redis refuses them', async () => {
    const { client, commit, refused, pending } = setUp();
    await client.enqueueMany('a', [1, 1], { unique: '1h' });
    await client.enqueueMany('b', [1, 2], { taskId: 'one' });
    await commit();
    expect(await pending()).toBe(2);
    expect(refused).toEqual([
      ['a', 'DuplicateTaskError'],
      ['b', 'TaskIdConflictError'],
    ]);
  });

  it('are reported as lost after a minute', async () => {
    const { client, clock, faults, commit, lost } = setUp();
    faults.set('enqueue', 'before');
    await client.enqueueMany('a', [1, 2]);
    await commit();
    for (let seconds = 0; seconds < 60; seconds += 5) {
      expect(lost).toEqual([]);
      clock.advance(5_000);
      await turn();
    }
    expect(lost).toEqual(['a', 'a']);
  });

  it('are tried once more when the client closes, and reported if that fails', async () => {
    const first = setUp();
    first.faults.set('enqueue', 'before');
    await first.client.enqueue('a');
    await first.commit();
    first.faults.clear();
    await first.client.close();
    expect(await first.pending()).toBe(1);

    const second = setUp();
    second.faults.set('enqueue', 'before');
    await second.client.enqueue('a');
    await second.commit();
    await second.client.close();
    expect(second.lost).toEqual(['a']);
  });
});
