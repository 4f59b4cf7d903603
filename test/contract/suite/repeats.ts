import { describe, expect, onTestFinished } from 'vitest';
import type { Lease } from '../../../lib/broker/broker.js';
import type { RepeatPolicy, RepeatReply, RepeatRequest } from '../../../lib/broker/uniqueness.js';
import type { TaskState } from '../../../lib/wire/states.js';
import { repeat } from '../../support/messages.js';
import { archival, completion, done, type Driver, type DriverTest, requeueing, retrial } from '../driver.js';

const REPLACING = ['replace', 'debounce', 'latest', 'supersede'] as const;

export async function enqueue(driver: Driver, ...requests: RepeatRequest[]): Promise<readonly RepeatReply[]> {
  return (await driver.broker.uniqueness.enqueue('default', requests)).replies as readonly RepeatReply[];
}

const payloadOf = async (driver: Driver, id: string): Promise<string> =>
  String((await driver.queue()).tasks[id]?.message.payload);

/** A request of the policy as the client makes it: a debounced one has a time. */
const next = (driver: Driver, policy: RepeatPolicy, id: string, wait = 5): RepeatRequest =>
  repeat(policy, id, policy === 'debounce' ? { processAt: driver.now + wait } : {});

/** A first task of the policy, in a state. */
async function first(driver: Driver, policy: RepeatPolicy, state: TaskState): Promise<string> {
  const processAt = state === 'scheduled' || policy === 'debounce' ? driver.now + 60 : undefined;
  await enqueue(driver, repeat(policy, 'first', { processAt, ttl: 600 }));
  if (state === 'scheduled') return 'first';
  if (policy === 'debounce') {
    driver.clock.advance(60_000);
    await driver.broker.maintenance.forward('default');
  }
  if (state === 'pending') return 'first';
  const task = await driver.takeOne();
  if (state === 'retry') await driver.settle(retrial(task, driver.now + 60));
  if (state === 'archived') await driver.settle(archival(task));
  if (state === 'completed') await driver.settle(completion(task, driver.now + 60));
  return 'first';
}

export function exerciseRepeats(it: DriverTest): void {
  describe('a task with a policy for repeats', () => {
    it.for(['reject', 'existing', ...REPLACING] as const)(
      'takes a lock under its own id: %s',
      async (policy, { driver }) => {
        expect(await enqueue(driver, next(driver, policy, 'a'))).toEqual([{ status: 'enqueued' }]);
        const queue = await driver.queue();
        const [lock = '', held] = Object.entries(queue.locks)[0] ?? [];
        expect(held?.owner).toBe('a');
        expect(queue.tasks['a']?.uniqueKey).toBe(lock);
      },
    );

    it.for(['reject', 'existing', ...REPLACING] as const)(
      'frees its lock when it succeeds: %s',
      async (policy, { driver }) => {
        await first(driver, policy, 'pending');
        const task = await driver.takeOne();
        await driver.settle(done(task));
        expect((await driver.queue()).locks).toEqual({});
      },
    );

    it('keeps a lock that only its time ends', async ({ driver }) => {
      await enqueue(driver, repeat('existing', 'a', { released: false }));
      await driver.settle(done(await driver.takeOne()));
      expect(await enqueue(driver, repeat('existing', 'b', { released: false }))).toEqual([
        { status: 'existing', owner: { id: 'a', state: undefined } },
      ]);
      expect(await enqueue(driver, repeat('reject', 'c'))).toEqual([
        { status: 'duplicate', owner: { id: 'a', state: undefined } },
      ]);
    });

    it('conflicts when its id is taken', async ({ driver }) => {
      await driver.add({ id: 'a' });
      expect(await enqueue(driver, repeat('existing', 'a'))).toMatchObject([{ status: 'conflict' }]);
      expect((await driver.queue()).locks).toEqual({});
    });
  });

  describe('a repeat', () => {
    it.for(['pending', 'scheduled', 'active', 'retry', 'archived'] as const)(
      'that is rejected names the task in the way, which is %s',
      async (state, { driver }) => {
        await first(driver, 'reject', state);
        const [reply] = await enqueue(driver, repeat('reject', 'b'));
        expect(reply).toMatchObject({ status: 'duplicate', owner: { id: 'first', state } });
        expect(Object.keys((await driver.queue()).tasks)).toEqual(['first']);
      },
    );

    it.for(['pending', 'scheduled', 'active', 'retry', 'archived'] as const)(
      'gets the existing task, which is %s',
      async (state, { driver }) => {
        await first(driver, 'existing', state);
        const [reply] = await enqueue(driver, repeat('existing', 'b'));
        expect(reply).toMatchObject({ status: 'existing', owner: { id: 'first', state } });
        expect(String(reply?.owner?.message?.payload)).toBe('first');
        expect(reply?.owner?.processAt).toBe(state === 'scheduled' || state === 'retry' ? driver.now + 60 : undefined);
      },
    );

    it.for(
      REPLACING.flatMap((policy) => (['pending', 'scheduled', 'retry'] as const).map((state) => ({ policy, state }))),
    )('gives its payload to a task that has not started: $policy, $state', async ({ policy, state }, { driver }) => {
      await first(driver, policy, state);
      const [reply] = await enqueue(driver, next(driver, policy, 'b'));
      const stays = policy === 'debounce' && state === 'pending';
      const is = policy === 'debounce' && !stays ? 'scheduled' : 'pending';
      expect(reply).toMatchObject({ status: 'replaced', owner: { id: 'first', state: is } });
      expect(await payloadOf(driver, 'first')).toBe('b');
      const queue = await driver.queue();
      expect(queue.tasks['first']?.message.id).toBe('first');
      expect(queue.tasks['first']?.message.retried).toBe(0);
      expect({ pending: queue.pending, scheduled: queue.scheduled, retry: queue.retry }).toEqual({
        pending: is === 'pending' ? ['first'] : [],
        scheduled: is === 'scheduled' ? [['first', driver.now + 5]] : [],
        retry: [],
      });
    });

    it('moves a pending task that it replaces to its time, and back', async ({ driver }) => {
      await enqueue(driver, repeat('replace', 'a'));
      await enqueue(driver, repeat('replace', 'b', { processAt: driver.now + 9 }));
      expect((await driver.queue()).scheduled).toEqual([['a', driver.now + 9]]);
      expect((await driver.queue()).pending).toEqual([]);
      await enqueue(driver, repeat('replace', 'c'));
      expect((await driver.queue()).scheduled).toEqual([]);
      expect((await driver.queue()).pending).toEqual(['a']);
    });

    it.for([127, 128, 300, 20_000])(
      'keeps the id of the task that it replaces, of %d letters',
      async (length, { driver }) => {
        const id = 'i'.repeat(length);
        await enqueue(driver, repeat('replace', id));
        await enqueue(driver, repeat('replace', 'b'));
        const { tasks } = await driver.queue();
        expect(Object.keys(tasks)).toEqual([id]);
        expect(tasks[id]!.message).toMatchObject({ id, payload: Buffer.from('b') });
        expect((await driver.takeOne()).message.id).toBe(id);
      },
    );

    it.for(['active', 'archived'] as const)('does not replace a task that is %s', async (state, { driver }) => {
      await first(driver, 'replace', state);
      const [reply] = await enqueue(driver, repeat('replace', 'b'));
      expect(reply).toMatchObject({ status: 'duplicate', owner: { id: 'first', state } });
      expect(await payloadOf(driver, 'first')).toBe('first');
    });

    it.for([undefined, 60])('does not replace a member of a group, delayed by %s', async (delay, { driver }) => {
      const lock = repeat('replace').repeat.lock;
      const processAt = delay && driver.now + delay;
      await driver.add({ id: 'first', groupKey: 'g', uniqueKey: lock }, { uniqueTtl: 600, processAt });
      const [reply] = await enqueue(driver, repeat('replace', 'b'));
      expect(reply).toMatchObject({ status: 'duplicate', owner: { id: 'first' } });
      expect(await payloadOf(driver, 'first')).not.toBe('b');
    });

    it.for(
      (['debounce', 'latest', 'supersede'] as const).flatMap((policy) =>
        (['archived', 'completed'] as const).map((state) => ({ policy, state })),
      ),
    )('is a new task when the last one is over: $policy, $state', async ({ policy, state }, { driver }) => {
      await first(driver, policy, state);
      expect(await enqueue(driver, next(driver, policy, 'b'))).toEqual([{ status: 'enqueued' }]);
      expect(Object.values((await driver.queue()).locks).map(({ owner }) => owner)).toEqual(['b']);
    });

    it('sees those before it in the same call', async ({ driver }) => {
      const replies = await enqueue(driver, ...['a', 'b', 'c'].map((id) => next(driver, 'debounce', id)));
      expect(replies.map(({ status }) => status)).toEqual(['enqueued', 'replaced', 'replaced']);
      const queue = await driver.queue();
      expect(queue.scheduled).toEqual([['a', driver.now + 5]]);
      expect(await payloadOf(driver, 'a')).toBe('c');
    });

    it('replaces what the same call has made pending', async ({ driver }) => {
      await enqueue(
        driver,
        repeat('replace', 'a'),
        repeat('replace', 'b', { processAt: driver.now + 9 }),
        repeat('replace', 'c'),
      );
      const queue = await driver.queue();
      expect([queue.pending, queue.scheduled]).toEqual([['a'], []]);
      expect(await payloadOf(driver, 'a')).toBe('c');
    });
  });

  describe('a debounced task', () => {
    it('starts at the latest when its limit says, counted from the first', async ({ driver }) => {
      const start = driver.now;
      for (const id of ['a', 'b', 'c', 'd']) {
        await enqueue(driver, repeat('debounce', id, { processAt: driver.now + 5, limit: driver.now + 12 }));
        driver.clock.advance(4_000);
      }
      expect((await driver.queue()).scheduled).toEqual([['a', start + 12]]);
      expect(await payloadOf(driver, 'a')).toBe('d');
    });

    it('is a new one while the last one runs', async ({ driver }) => {
      await first(driver, 'debounce', 'pending');
      const running = await driver.takeOne();
      expect(await enqueue(driver, next(driver, 'debounce', 'b'))).toEqual([{ status: 'enqueued' }]);
      await driver.settle(done(running)); // its end frees nothing of the new one
      expect(Object.values((await driver.queue()).locks).map(({ owner }) => owner)).toEqual(['b']);
    });
  });

  describe('the latest', () => {
    it.for(['succeeds', 'dies', 'is cancelled'] as const)(
      'follows the one that runs, when that %s',
      async (end, { driver }) => {
        await first(driver, 'latest', 'pending');
        const running = await driver.takeOne();
        const limit = driver.now + 99;
        const replies = await enqueue(driver, repeat('latest', 'b', { limit }), repeat('latest', 'c'));
        expect(replies).toMatchObject([
          { status: 'enqueued', owner: { id: 'b', state: 'waiting', processAt: limit } },
          { status: 'replaced', owner: { id: 'b', state: 'waiting', processAt: limit } },
        ]);
        expect(await driver.take(9)).toEqual([]);
        const settlement = {
          succeeds: done(running),
          dies: archival(running),
          'is cancelled': { ...done(running), revoked: true as const },
        }[end];
        await driver.settle(settlement);
        const [follower, ...more] = await driver.take(9);
        expect(more).toEqual([]);
        expect(follower?.message).toMatchObject({ id: 'b', payload: Buffer.from('c') });
        await driver.settle(done(follower!));
        expect((await driver.queue()).locks).toEqual({});
        expect(await enqueue(driver, repeat('latest', 'd'))).toEqual([{ status: 'enqueued' }]);
      },
    );

    /** Somebody moves the one that follows, with the inspector or Go's tools. */
    const moveFollower = async (driver: Driver, action: 'delete' | 'archive') => {
      await first(driver, 'latest', 'pending');
      const running = await driver.takeOne();
      await enqueue(driver, repeat('latest', 'b'));
      await driver.broker.administration.moveTasks('default', action, ['b']);
      return running;
    };

    it.for(['delete', 'archive'] as const)(
      'is made again when the one that follows was moved: %s',
      async (action, { driver }) => {
        const running = await moveFollower(driver, action);
        const replies = await enqueue(driver, repeat('latest', 'c'), repeat('latest', 'd'));
        expect(replies).toMatchObject([
          { status: 'enqueued', owner: { id: 'c', state: 'waiting' } },
          { status: 'replaced', owner: { id: 'c', state: 'waiting' } },
        ]);
        expect(await driver.take(9)).toEqual([]);
        await driver.settle(done(running));
        const [follower, ...more] = await driver.take(9);
        expect(more).toEqual([]);
        expect(follower?.message).toMatchObject({ id: 'c', payload: Buffer.from('d') });
        await driver.settle(done(follower!));
        expect((await driver.queue()).locks).toEqual({});
        expect(await enqueue(driver, repeat('latest', 'e'))).toEqual([{ status: 'enqueued' }]);
      },
    );

    it('is the one that comes again, when that which follows it was deleted', async ({ driver }) => {
      const running = await moveFollower(driver, 'delete');
      await driver.settle(retrial(running, driver.now + 60));
      expect(await enqueue(driver, repeat('latest', 'c'))).toMatchObject([
        { status: 'replaced', owner: { id: 'first', state: 'pending' } },
      ]);
      expect(Object.values((await driver.queue()).locks).map(({ owner }) => owner)).toEqual(['first']);
      const again = await driver.takeOne();
      expect(String(again.message.payload)).toBe('c');
      await driver.settle(done(again));
      expect((await driver.queue()).locks).toEqual({});
    });

    it('starts anew when both are over', async ({ driver }) => {
      await driver.settle(done(await moveFollower(driver, 'archive')));
      expect(await enqueue(driver, repeat('latest', 'c'))).toEqual([{ status: 'enqueued' }]);
    });

    it('does not wait for one that was deleted', async ({ driver }) => {
      await first(driver, 'latest', 'pending');
      const running = await driver.takeOne();
      await enqueue(driver, repeat('latest', 'b'));
      await driver.settle(retrial(running, driver.now + 60));
      await driver.broker.administration.moveTasks('default', 'delete', ['first']);
      expect(await enqueue(driver, repeat('latest', 'c'))).toMatchObject([
        { status: 'replaced', owner: { id: 'b', state: 'pending' } },
      ]);
      await driver.broker.links.check('default', ['first']); // it is known later
      const [follower, ...more] = await driver.take(9);
      expect([follower?.lease.id, String(follower?.message.payload), more]).toEqual(['b', 'c', []]);
    });

    it('waits for the retries of the one that runs', async ({ driver }) => {
      await first(driver, 'latest', 'pending');
      const running = await driver.takeOne();
      await enqueue(driver, repeat('latest', 'b'));
      await driver.settle(retrial(running, driver.now));
      await driver.broker.maintenance.forward('default');
      const again = await driver.takeOne();
      expect(again.lease.id).toBe('first');
      expect(await driver.take(9)).toEqual([]);
      await driver.settle(done(again));
      expect((await driver.takeOne()).lease.id).toBe('b');
    });
  });

  describe('a queue without room', () => {
    const bounded = async (driver: Driver, maxPending: number, ...requests: RepeatRequest[]) =>
      (await driver.broker.uniqueness.enqueue('default', requests, { maxPending })).replies;

    it.for(['reject', 'existing', 'replace', 'latest', 'supersede', 'once'] as const)(
      'takes no new task that would be pending: %s',
      async (policy, { driver }) => {
        await driver.add({ id: 'other' });
        const late = { processAt: driver.now + 9 };
        const replies = await bounded(
          driver,
          2,
          repeat(policy, 'a', { lock: 'one' }),
          repeat(policy, 'b', { lock: 'two' }),
          repeat(policy, 'c', { lock: 'three', ...late }),
        );
        expect(replies).toMatchObject([{ status: 'enqueued' }, { pending: 2 }, { status: 'enqueued' }]);
        const queue = await driver.queue();
        expect(Object.keys(queue.tasks)).toHaveLength(3);
        expect(Object.keys(queue.locks)).toHaveLength(policy === 'once' ? 0 : 2);
      },
    );

    it.for(REPLACING)('changes a task that is there: %s', async (policy, { driver }) => {
      await first(driver, policy, 'scheduled');
      await driver.add({ id: 'other' });
      expect(await bounded(driver, 1, next(driver, policy, 'b'))).toMatchObject([{ status: 'replaced' }]);
      expect(await payloadOf(driver, 'first')).toBe('b');
    });

    it('finds a task that is there, and lets one follow that runs', async ({ driver }) => {
      await first(driver, 'latest', 'pending');
      await driver.takeOne();
      await driver.add({ id: 'other' });
      expect(await bounded(driver, 1, repeat('existing', 'x'))).toMatchObject([{ status: 'existing' }]);
      expect(await bounded(driver, 1, repeat('latest', 'b'))).toMatchObject([
        { status: 'enqueued', owner: { id: 'b', state: 'waiting' } },
      ]);
    });
  });

  describe('a superseding task', () => {
    it('cancels the one that runs, in one step', async ({ driver }) => {
      await first(driver, 'supersede', 'pending');
      const running = await driver.takeOne();
      const cancelled: string[] = [];
      const off = await driver.broker.cancellation.subscribeCancellations((id) => cancelled.push(id));
      onTestFinished(off);
      expect(await driver.broker.uniqueness.findSuperseded('default', ['first'])).toEqual([undefined]);
      expect(await enqueue(driver, repeat('supersede', 'b'), repeat('supersede', 'c'))).toMatchObject([
        { status: 'enqueued' },
        { status: 'replaced', owner: { id: 'b', state: 'pending' } },
      ]);
      await expect.poll(() => cancelled).toEqual(['first']);
      expect(await driver.broker.uniqueness.findSuperseded('default', ['first', 'b', 'x'])).toEqual([
        'b',
        undefined,
        undefined,
      ]);
      expect((await driver.queue()).pending).toEqual(['b']);
      await driver.settle(done(running));
      expect(Object.values((await driver.queue()).locks).map(({ owner }) => owner)).toEqual(['b']);
    });
  });

  describe('a superseded task', () => {
    it.for(['retry', 'requeue', 'wait'] as const)(
      'is deleted where it would come again: %s',
      async (kind, { driver }) => {
        await first(driver, 'supersede', 'pending');
        const running = await driver.takeOne();
        await enqueue(driver, repeat('supersede', 'b'));
        const { lease } = running;
        const settlement = {
          retry: retrial(running, driver.now), // also of a recoverer, when its server has died
          requeue: requeueing(running),
          wait: { kind: 'wait', lease, waitlist: 'limit' } as const,
        }[kind];
        expect(await driver.settle(settlement)).toEqual(['settled']);
        driver.clock.advance(3_600_000);
        await driver.broker.maintenance.forward('default');
        expect((await driver.take(9)).map((task) => task.lease.id)).toEqual(['b']);
        expect(Object.keys((await driver.queue()).tasks)).toEqual(['b']);
      },
    );
  });

  describe('a superseded task with steps', () => {
    const undoOf = async ({ broker }: Driver): Promise<unknown> => {
      const bytes = (await broker.checkpoints.read('default', 'first')).checkpoints.get('!undo');
      return bytes && JSON.parse(String(bytes));
    };
    const undo = (driver: Driver, lease: Lease, record: object) =>
      driver.broker.checkpoints.write(lease, '!undo', Buffer.from(`${JSON.stringify(record)}\n`));

    it.for(['retry', 'requeue', 'wait', 'sleep'] as const)(
      'comes again to be undone where it would come again: %s',
      async (kind, { driver }) => {
        await first(driver, 'supersede', 'pending');
        const running = await driver.takeOne();
        const { lease } = running;
        await driver.broker.checkpoints.write(lease, 'capture', Buffer.from('{}\n1'));
        await undo(driver, lease, { error: 'before', at: 1, over: true, life: 2, signals: { go: 1 } });
        await enqueue(driver, repeat('supersede', 'b'));
        const settlement = {
          retry: retrial(running, driver.now),
          requeue: requeueing(running),
          wait: { kind: 'wait', lease, waitlist: 'limit' } as const,
          sleep: { kind: 'sleep', lease, wakeAt: driver.now + 600 } as const,
        }[kind];
        expect(await driver.settle(settlement)).toEqual(['settled']);
        const rest = { life: 2, signals: { go: 1 }, at: driver.now * 1000 };
        expect(await undoOf(driver)).toEqual({ error: 'superseded by task "b"', outcome: 'revoke', ...rest });
        const [again] = await driver.take(1);
        expect(again).toMatchObject({ lease: { id: 'first' }, message: { headers: running.message.headers } });
        expect(await driver.broker.uniqueness.findSuperseded('default', ['first'])).toEqual([undefined]);
        await driver.settle(retrial(again!, driver.now + 60));
        expect(await driver.stateOf('first')).toBe('retry');
        expect((await driver.queue()).pending).toEqual(['b']);
      },
    );

    it.for(REPLACING)('keeps its payload while it is undone: %s', async (policy, { driver }) => {
      await first(driver, policy, 'pending');
      const { lease } = await driver.takeOne();
      await undo(driver, lease, { error: 'no', outcome: 'archive', at: 1 });
      await driver.settle({ kind: 'sleep', lease, wakeAt: driver.now + 600 });
      const [reply] = await enqueue(driver, next(driver, policy, 'b'));
      expect(reply?.status).toBe(policy === 'replace' ? 'duplicate' : 'enqueued');
      expect(await payloadOf(driver, 'first')).toBe('first');
      expect(await driver.stateOf('first')).toBe('scheduled');
    });

    it('is not cancelled once it is undone, and is like any other when that is over', async ({ driver }) => {
      await first(driver, 'supersede', 'pending');
      const { lease } = await driver.takeOne();
      await undo(driver, lease, { error: 'no', outcome: 'archive', at: 1 });
      await enqueue(driver, repeat('supersede', 'b'));
      expect(await driver.broker.uniqueness.findSuperseded('default', ['first'])).toEqual([undefined]);
      const other = await driver.takeOne();
      await undo(driver, other.lease, { error: 'no', outcome: 'archive', at: 1, over: true });
      await enqueue(driver, repeat('supersede', 'c'));
      expect(await driver.broker.uniqueness.findSuperseded('default', ['b'])).toEqual(['c']);
    });
  });

  describe('a task that is to run once', () => {
    it.for(['pending', 'scheduled', 'active', 'retry', 'archived', 'completed'] as const)(
      'is the existing one while that is %s',
      async (state, { driver }) => {
        await first(driver, 'once', state);
        const [reply] = await enqueue(driver, repeat('once', 'b'));
        expect(reply).toMatchObject({ status: 'existing', owner: { id: 'once-one', state } });
        expect(String(reply?.owner?.message?.payload)).toBe('first');
        expect((await driver.queue()).locks).toEqual({});
      },
    );

    it('is a new one when that was deleted, and once within a call', async ({ driver }) => {
      await first(driver, 'once', 'archived');
      await driver.broker.administration.moveTasks('default', 'delete', ['once-one']);
      const replies = await enqueue(driver, repeat('once', 'b'), repeat('once', 'c'));
      expect(replies.map(({ status }) => status)).toEqual(['enqueued', 'existing']);
      expect((await driver.queue()).pending).toEqual(['once-one']);
    });
  });

  describe('locks', () => {
    it('are released by their owner only', async ({ driver }) => {
      const request = repeat('reject', 'a');
      await enqueue(driver, request);
      expect(await driver.broker.uniqueness.release('default', request.repeat.lock, 'b')).toBe(false);
      expect(Object.keys((await driver.queue()).locks)).toEqual([request.repeat.lock]);
      expect(await driver.broker.uniqueness.release('default', request.repeat.lock, 'a')).toBe(true);
      expect((await driver.queue()).locks).toEqual({});
      expect(await driver.broker.uniqueness.release('default', request.repeat.lock, 'a')).toBe(false);
    });

    it('are listed with who holds them, for how long', async ({ driver }) => {
      const one = repeat('reject', 'a', { lock: 'one', ttl: 60 });
      const two = repeat('existing', 'b', { lock: 'two', ttl: 600, released: false });
      await enqueue(driver, one, two);
      await driver.take(1);
      await driver.settle(done(await driver.takeOne()));
      const { locks, cursor } = await driver.broker.uniqueness.list('default', undefined);
      expect(cursor).toBeUndefined();
      const sorted = [...locks].sort((a, b) => (a.lock < b.lock ? -1 : 1));
      expect(sorted).toMatchObject([
        { lock: one.repeat.lock, owner: { id: 'a', state: 'active', message: { type: 'test:task' } } },
        { lock: two.repeat.lock, owner: { id: 'b', state: undefined } },
      ]);
      expect(sorted[0]!.expiresIn).toBeLessThanOrEqual(60_000);
      expect(sorted[1]!.expiresIn).toBeGreaterThan(590_000);
    });

    it('of a task that is deleted end with it', async ({ driver }) => {
      await enqueue(driver, repeat('existing', 'a', { released: false }));
      await driver.broker.administration.moveTasks('default', 'delete', ['a']);
      expect(await enqueue(driver, repeat('existing', 'b'))).toEqual([{ status: 'enqueued' }]);
    });
  });
}
