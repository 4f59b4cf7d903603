import { describe, expect, onTestFinished, vi } from 'vitest';
import type { Prerequisite } from '../../../lib/broker/links.js';
import { InvalidTaskError } from '../../../lib/errors.js';
import { Keyspace } from '../../../lib/wire/keys.js';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, archival, retrial } from '../driver.js';
import { type Ending, LinkSession } from '../link-session.js';
import { exerciseFailedPrerequisites } from './dependency-failures.js';
import { exerciseKills } from './dependency-kills.js';
import { exerciseLostLinks } from './dependency-losses.js';
import { exerciseManyDependencies } from './dependency-many.js';
import { exerciseMarks } from './dependency-marks.js';
import { exerciseOperators } from './dependency-operators.js';
import { exerciseUsedIds } from './dependency-identity.js';

const MARK: Prerequisite = { type: 'pay', key: 'k' };
const ENDINGS: readonly Ending[] = ['done', 'complete'];

/** Queue of the prerequisite, its end, and when the waiting task is submitted. */
const ORDERS = ['default', 'other'].flatMap((queue) =>
  ENDINGS.flatMap((ending) =>
    (['before', 'while it runs', 'after'] as const).map((order) => ({ queue, ending, order })),
  ),
);

export function exerciseDependencies(it: DriverTest): void {
  describe('a task that waits for another', () => {
    exerciseOrders(it);
    exerciseSubmission(it);
  });
  exerciseManyDependencies(it);
  exerciseMarks(it);
  exerciseFailedPrerequisites(it);
  exerciseOperators(it);
  exerciseUsedIds(it);
  exerciseLostLinks(it);
  exerciseKills(it);
}

function exerciseOrders(it: DriverTest): void {
  it.for(ORDERS)('by its key runs after it, whatever came first: %j', async ({ queue, ending, order }, { driver }) => {
    const session = new LinkSession(driver);
    const submit = async (): Promise<void> => {
      expect(await session.enqueue(session.waiting('b', [MARK]))).toEqual(['enqueued']);
      await session.relay();
    };
    if (order === 'before') await submit();
    await session.enqueue(session.marked('a', 'k', { queue }));
    const task = await driver.takeOne(queue);
    expect(task.lease.id).toBe('a');
    expect(task.links).toEqual([{ k: 'm', to: '~pay', key: 'k', ttl: 86_400 }]);
    if (order === 'while it runs') await submit();
    if (order !== 'after') expect(await session.stateOf('b')).toBe('waiting');
    await session.end(task, ending);
    await session.relay();
    if (order === 'after') await submit();
    expect(await session.stateOf('b')).toBe('pending');
    expect((await driver.take(5)).map(({ lease }) => lease.id)).toEqual(['b']);
  });

  it.for(ORDERS.filter(({ order, ending }) => order !== 'after' || ending === 'complete'))(
    'by its id runs after it: %j',
    async ({ queue, ending, order }, { driver }) => {
      const session = new LinkSession(driver);
      const b = session.waiting('b', [{ queue, id: 'a' }]);
      await driver.enqueue([request({ id: 'a', queue })], queue);
      if (order === 'before') expect(await session.enqueueAfter(b)).toBe('enqueued');
      const task = await driver.takeOne(queue);
      if (order === 'while it runs') expect(await session.enqueueAfter(b)).toBe('enqueued');
      await session.relay();
      if (order !== 'after') expect(await session.stateOf('b')).toBe('waiting');
      await session.end(task, ending);
      await session.relay();
      if (order === 'after') expect(await session.enqueueAfter(b)).toBe('enqueued');
      await session.relay();
      expect(await session.stateOf('b')).toBe('pending');
    },
  );

  it('is claimed by the call that ends its prerequisite in the same queue', async ({ driver }) => {
    const session = new LinkSession(driver);
    await driver.add({ id: 'a' });
    await session.enqueueAfter(session.waiting('b', [{ queue: 'default', id: 'a' }]));
    const tasks = await session.end(await driver.takeOne(), 'done', '', 5);
    expect(tasks.map(({ lease }) => lease.id)).toEqual(['b']);
    expect(session.sent).toEqual([]);
  });

  it('wakes the servers of its queue when it is released', async ({ driver }) => {
    const session = new LinkSession(driver);
    const noticed: string[] = [];
    const source = driver.broker.wake.watch({
      onPending: (queue) => void noticed.push(queue),
      onDelayed: () => undefined,
      onLost: () => undefined,
    });
    onTestFinished(() => source.close());
    await driver.add({ id: 'a', queue: 'other' });
    await session.enqueueAfter(session.waiting('b', [{ queue: 'other', id: 'a' }]));
    expect(await source.armPending(['default'])).toEqual(new Map([['default', 0]]));
    await session.runNext('done', 'other');
    await session.relay();
    await vi.waitFor(() => expect(noticed).toEqual(['default']));
  });

  it('runs in a chain of a hundred, from queue to queue', async ({ driver }) => {
    const session = new LinkSession(driver);
    const queueOf = (n: number): string => (n % 3 === 0 ? 'default' : `q${n % 3}`);
    await driver.add({ id: 't0' });
    for (let n = 1; n <= 100; n++) {
      const before = { queue: queueOf(n - 1), id: `t${n - 1}` };
      await session.enqueueAfter(session.waiting(`t${n}`, [before], { message: { queue: queueOf(n) } }));
    }
    for (let n = 0; n <= 100; n++) {
      expect(await session.runNext('done', queueOf(n))).toBe(`t${n}`);
      await session.relay();
    }
    await session.expectNothingKept();
  });
}

function exerciseSubmission(it: DriverTest): void {
  it('takes its id and its lock when it is submitted', async ({ driver }) => {
    const session = new LinkSession(driver);
    const uniqueKey = new Keyspace(driver.broker.keyPrefix).queue('default').unique('t', Buffer.from('one'));
    const unique = (id: string) =>
      session.waiting(id, [MARK], { message: { uniqueKey, payload: Buffer.from('kept') }, uniqueTtl: 60 });
    expect(await session.enqueue(unique('b'), unique('c'))).toEqual(['enqueued', 'duplicate']);
    expect(await session.enqueue(session.waiting('b', [MARK]))).toEqual(['conflict']);
    expect(await driver.enqueue([request({ id: 'b' })])).toEqual(['conflict']);
    expect(await driver.enqueue([request({ id: 'd', uniqueKey }, { uniqueTtl: 60 })])).toEqual(['duplicate']);
    await session.enqueue(session.marked('a', 'k'));
    await session.relay();
    await session.runNext();
    await session.relay();
    const task = await driver.takeOne();
    expect(task.message).toMatchObject({ id: 'b', uniqueKey, payload: Buffer.from('kept') });
    await session.end(task, 'done');
    expect((await driver.queue()).locks).toEqual({});
  });

  it('keeps its own prerequisites when another task of its id is refused', async ({ driver }) => {
    const session = new LinkSession(driver);
    await driver.add({ id: 'a1' });
    await driver.add({ id: 'a2' });
    await session.enqueueAfter(session.waiting('b', [{ queue: 'default', id: 'a2' }]));
    expect(await session.enqueueAfter(session.waiting('b', [{ queue: 'default', id: 'a1' }]))).toBe('conflict');
    await session.runNext();
    expect(await session.stateOf('b')).toBe('waiting');
    await session.runNext();
    expect(await session.stateOf('b')).toBe('pending');
  });

  it('is in no group', async ({ driver }) => {
    const session = new LinkSession(driver);
    const grouped = session.waiting('b', [MARK], { message: { groupKey: 'g' } });
    await expect(session.enqueue(session.waiting('c', [MARK]), grouped)).rejects.toThrow(InvalidTaskError);
    await expect(session.enqueue(session.marked('a', 'k', { groupKey: 'g' }))).rejects.toThrow(/the group "g"/);
    expect(await session.stateOf('c')).toBeUndefined();
  });

  it('is scheduled after its release when its time has not come, and pending when it has', async ({ driver }) => {
    const session = new LinkSession(driver);
    const prerequisite = { queue: 'default', id: 'a' };
    await driver.add({ id: 'a' });
    await session.enqueueAfter(session.waiting('b', [prerequisite], { processAt: driver.now + 60 }));
    await session.enqueueAfter(session.waiting('c', [prerequisite], { processAt: driver.now + 5 }));
    driver.clock.advance(10_000);
    await session.runNext();
    expect([await session.stateOf('b'), await session.stateOf('c')]).toEqual(['scheduled', 'pending']);
    expect((await driver.queue()).scheduled).toEqual([['b', driver.now + 50]]);
  });

  it('says what it waits for', async ({ driver }) => {
    const session = new LinkSession(driver);
    await driver.add({ id: 'a' });
    const deadline = driver.now + 100;
    const prerequisites = [{ queue: 'default', id: 'a' }, MARK];
    await session.enqueueAfter(session.waiting('b', prerequisites, { onFailure: 'wait', onTimeout: 'run', deadline }));
    await session.runNext();
    expect(await session.links.waitOf('default', 'b')).toEqual({
      edges: [
        { prerequisite: prerequisites[0], state: 'succeeded' },
        { prerequisite: MARK, state: 'waiting' },
      ],
      onFailure: 'wait',
      onTimeout: 'run',
      deadline,
      cancelled: false,
    });
    expect(await session.links.waitOf('default', 'a')).toBeUndefined();
    await session.act('run', 'b');
    expect((await session.links.waitOf('default', 'b'))?.deadline).toBeUndefined();
    expect(await session.links.waitOf('default', 'missing')).toBeUndefined();
  });

  it('must find a prerequisite named by its id, unless it says what else', async ({ driver }) => {
    const session = new LinkSession(driver);
    const after = [{ queue: 'other', id: 'gone' }];
    expect(await session.enqueueAfter(session.waiting('b', after))).toBe('missing');
    expect(await session.stateOf('b')).toBeUndefined();
    expect(await session.enqueueAfter(session.waiting('c', after), 'succeeded')).toBe('enqueued');
    expect(await session.enqueueAfter(session.waiting('d', after), 'failed')).toBe('enqueued');
    await session.relay();
    expect([await session.stateOf('c'), await session.stateOf('d')]).toEqual(['pending', 'archived']);
  });

  it('does not run for what is tried again', async ({ driver }) => {
    const session = new LinkSession(driver);
    await driver.add({ id: 'a' });
    await session.enqueueAfter(session.waiting('b', [{ queue: 'default', id: 'a' }]));
    session.took(await driver.exchange([retrial(await driver.takeOne(), driver.now + 5)], 0));
    await session.keep();
    expect(await session.stateOf('b')).toBe('waiting');
    expect(await driver.exchange([archival(await takeAfterRetry(driver))], 0)).toMatchObject({ settled: ['settled'] });
    expect(await session.stateOf('b')).toBe('archived');
  });
}

async function takeAfterRetry(driver: Driver) {
  driver.clock.advance(5_000);
  await driver.broker.maintenance.forward('default');
  return driver.takeOne();
}
