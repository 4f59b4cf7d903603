import { describe, expect, vi } from 'vitest';
import {
  AGGREGATION_SECONDS,
  type AggregationSet,
  type ClaimReply,
  type GroupPolicy,
  MAX_SET_SIZE,
} from '../../../lib/broker/groups.js';
import type { EnqueueRequest } from '../../../lib/broker/broker.js';
import { Keyspace } from '../../../lib/wire/keys.js';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, expectQueue, expectUnchanged } from '../driver.js';
import { LinkSession } from '../link-session.js';

const AT_ONCE: GroupPolicy = { gracePeriod: 0, maxDelay: 0, maxSize: 0 };

const claim = (driver: Driver, policy: Partial<GroupPolicy> = {}, limit = 10): Promise<ClaimReply> =>
  driver.broker.groups.claimDueSets('default', () => ({ ...AT_ONCE, ...policy }), limit);

/** Claims and reads the only set that is due. */
async function claimOne(driver: Driver, policy: Partial<GroupPolicy> = {}): Promise<AggregationSet> {
  const { sets } = await claim(driver, policy);
  expect(sets).toHaveLength(1);
  return driver.broker.groups.readSet(sets[0]!);
}

async function join(driver: Driver, group: string, ...ids: string[]): Promise<void> {
  for (const id of ids) await driver.add({ id, groupKey: group });
}

const idsOf = ({ tasks }: AggregationSet): string[] => tasks.map(({ id }) => id);

const lockKey = (driver: Driver, name: string): string =>
  new Keyspace(driver.broker.keyPrefix).queue('default').unique('t', Buffer.from(name));

export function exerciseAggregation(it: DriverTest): void {
  describe('claimDueSets with a watch', () => {
    it('finds what it finds without, however the groups change', async ({ driver }) => {
      const watch = driver.broker.groups.watchGroups('default');
      const policy: GroupPolicy = { gracePeriod: 60, maxDelay: 90, maxSize: 3 };
      const claimed: string[] = [];
      const claimAll = async (): Promise<void> => {
        for (;;) {
          const { sets } = await driver.broker.groups.claimDueSets('default', () => policy, 40, watch);
          claimed.push(...sets.map(({ group }) => group));
          if (sets.length < 40) return;
        }
      };
      const join = (first: number, last: number): Promise<unknown> =>
        driver.enqueue(Array.from({ length: last - first }, (_, n) => request({ groupKey: `group ${first + n}` })));
      await join(0, 250);
      await claimAll();
      for (const [first, last] of [
        [0, 20],
        [10, 30],
        [240, 300],
      ] as const) {
        driver.clock.advance(25_000);
        await join(first, last);
        await vi.waitFor(async () => {
          await claimAll();
          expect((await claim(driver, policy, 0)).nextDue).toBeGreaterThan(driver.now);
        });
      }
      const full = Array.from({ length: 10 }, (_, n) => `group ${10 + n}`);
      const old = Array.from({ length: 210 }, (_, n) => `group ${30 + n}`);
      expect(claimed.toSorted()).toEqual([...full, ...old].toSorted());
      driver.clock.advance(15_000); // 90 s after the first have joined
      await claimAll();
      const first = [0, 20, 240].flatMap((from) => Array.from({ length: 10 }, (_, n) => `group ${from + n}`));
      expect(claimed.slice(220).toSorted()).toEqual(first.toSorted());
      await watch.close();
    });
  });

  describe('helpToClaim', () => {
    it('claims while enough sets are claimed by others, and all in time', async ({ driver }) => {
      await driver.enqueue(Array.from({ length: 30 }, (_, n) => request({ groupKey: `group ${n}` })));
      const help = (limit: number) => driver.broker.groups.helpToClaim('default', () => AT_ONCE, limit, 3);
      expect(await help(10)).toEqual([]);
      await claim(driver, {}, 2);
      expect(await help(10)).toEqual([]);
      await claim(driver, {}, 1);
      const helped = [...(await help(10)), ...(await help(10)), ...(await help(10))];
      expect(new Set(helped.map(({ group }) => group)).size).toBe(27);
      expect((await driver.queue()).groupNames).toEqual([]);
    });
  });

  describe('claimDueSets', () => {
    it('takes a group that no task has joined for the grace period, and not a second before', async ({ driver }) => {
      await join(driver, 'g', 'a');
      driver.clock.advance(5000);
      await join(driver, 'g', 'b');
      driver.clock.advance(9999);
      await expectUnchanged(driver, async () => {
        expect(await claim(driver, { gracePeriod: 10 })).toEqual({ sets: [], nextDue: driver.now + 1 });
      });
      driver.clock.advance(1);
      const { sets, nextDue } = await claim(driver, { gracePeriod: 10 });
      expect(nextDue).toBeUndefined();
      expect(sets).toMatchObject([{ queue: 'default', group: 'g', deadline: driver.now + AGGREGATION_SECONDS }]);
      const members = [
        ['a', driver.now - 15],
        ['b', driver.now - 10],
      ];
      const set = { group: 'g', deadline: driver.now + AGGREGATION_SECONDS, members };
      await expectQueue(driver, { groups: {}, groupNames: [], sets: [set] as never });
      expect(await driver.stateOf('a')).toBe('aggregating');
    });

    it('takes a group when its first task has waited for the greatest delay, however many join', async ({ driver }) => {
      for (let second = 0; second < 5; second++) {
        await join(driver, 'g', `n${second}`);
        driver.clock.advance(1000);
      }
      const policy = { gracePeriod: 3, maxDelay: 6 };
      expect(await claim(driver, policy)).toEqual({ sets: [], nextDue: driver.now + 1 });
      driver.clock.advance(1000);
      expect(idsOf(await claimOne(driver, policy))).toEqual(['n0', 'n1', 'n2', 'n3', 'n4']);
    });

    it('takes a full group at once, the oldest tasks first, and leaves the rest', async ({ driver }) => {
      await join(driver, 'g', 'a', 'b');
      driver.clock.advance(1000);
      await join(driver, 'g', 'c', 'd', 'e');
      const policy = { gracePeriod: 60, maxSize: 2 };
      const first = await claim(driver, policy);
      expect(first.nextDue).toBe(driver.now);
      expect(idsOf(await driver.broker.groups.readSet(first.sets[0]!))).toEqual(['a', 'b']);
      expect(idsOf(await claimOne(driver, policy))).toEqual(['c', 'd']);
      expect(await claim(driver, policy)).toEqual({ sets: [], nextDue: driver.now + 60 });
      await expectQueue(driver, { groups: { g: [['e', driver.now]] }, groupNames: ['g'] });
    });

    it('does not take more than the greatest size when the group is due by time', async ({ driver }) => {
      await join(driver, 'g', 'a', 'b', 'c');
      const { sets } = await claim(driver, { maxSize: 2 });
      expect(idsOf(await driver.broker.groups.readSet(sets[0]!))).toEqual(['a', 'b']);
    });

    it('limits a set for which no size is given', async ({ driver }) => {
      const batch = Array.from({ length: MAX_SET_SIZE + 1 }, () => request({ groupKey: 'g' }));
      await driver.enqueue(batch);
      const first = await claim(driver);
      expect((await driver.broker.groups.readSet(first.sets[0]!)).tasks).toHaveLength(MAX_SET_SIZE);
      expect(first.nextDue).toBe(driver.now);
      expect((await claimOne(driver)).tasks).toHaveLength(1);
    });

    it('asks for the policy of each group, and skips groups without one', async ({ driver }) => {
      for (const group of ['mine:1', 'mine:2', 'other']) await join(driver, group, `of ${group}`);
      const policies: Record<string, GroupPolicy> = { 'mine:1': AT_ONCE, 'mine:2': { ...AT_ONCE, gracePeriod: 7 } };
      const { sets, nextDue } = await driver.broker.groups.claimDueSets('default', (group) => policies[group], 10);
      expect(sets.map(({ group }) => group)).toEqual(['mine:1']);
      expect(nextDue).toBe(driver.now + 7);
      expect((await driver.queue()).groupNames).toEqual(['mine:2', 'other']);
    });

    it('claims no more sets than it is asked for, and reports that more are due', async ({ driver }) => {
      for (let n = 0; n < 5; n++) await join(driver, `g${n}`, `t${n}`);
      const groups = new Set<string>();
      for (const expected of [2, 2, 1]) {
        const { sets, nextDue } = await claim(driver, {}, 2);
        expect(sets).toHaveLength(expected);
        if (groups.size < 3) expect(nextDue).toBe(driver.now);
        for (const { group } of sets) groups.add(group);
      }
      expect(groups.size).toBe(5);
    });

    it('comes to every group that is due, and claims one set of a group in a call', async ({ driver }) => {
      const batch = Array.from({ length: 450 }, (_, n) => request({ groupKey: `group ${n % 150}` }));
      await driver.enqueue(batch);
      const claimed: string[] = [];
      for (;;) {
        const { sets } = await claim(driver, { maxSize: 1 }, 40);
        const groups = sets.map(({ group }) => group);
        expect(new Set(groups).size).toBe(groups.length);
        claimed.push(...groups);
        if (groups.length === 0) break;
      }
      expect(claimed.length).toBe(450);
      expect(new Set(claimed).size).toBe(150);
    });

    it('only returns when the next one is due when it is asked for none', async ({ driver }) => {
      await join(driver, 'g', 'a');
      await expectUnchanged(driver, async () => {
        expect(await claim(driver, { gracePeriod: 5 }, 0)).toEqual({ sets: [], nextDue: driver.now + 5 });
        expect(await claim(driver, {}, 0)).toEqual({ sets: [], nextDue: driver.now });
      });
    });

    it('claims 250 groups, each once', async ({ driver }) => {
      const batch = Array.from({ length: 250 }, (_, n) => request({ groupKey: `group ${n}` }));
      await driver.enqueue(batch);
      const { sets, nextDue } = await claim(driver, {}, 1000);
      expect(new Set(sets.map(({ group }) => group)).size).toBe(250);
      expect(new Set(sets.map(({ key }) => key)).size).toBe(250);
      expect(nextDue).toBeUndefined();
    });

    it('has nothing to do in an empty queue', async ({ driver }) => {
      expect(await claim(driver)).toEqual({ sets: [], nextDue: undefined });
    });
  });

  describe('readSet', () => {
    it('returns whole messages in the order in which they joined', async ({ driver }) => {
      const batch = Array.from({ length: 1200 }, (_, n) =>
        request({ id: `n${String(n).padStart(4, '0')}`, groupKey: 'g', payload: Buffer.from([n % 256, 0, 255]) }),
      );
      await driver.enqueue(batch);
      const set = await claimOne(driver);
      expect(set.damaged).toEqual([]);
      expect(set.tasks).toEqual(batch.map(({ message }) => message));
    });

    it('returns nothing for a set that is gone', async ({ driver }) => {
      await join(driver, 'g', 'a');
      const set = await claimOne(driver);
      await driver.broker.groups.finishSet(set, undefined);
      expect((await driver.broker.groups.readSet(set)).tasks).toEqual([]);
    });
  });

  describe('finishSet', () => {
    const finish = async (driver: Driver, made: EnqueueRequest): Promise<void> => {
      await join(driver, 'g', 'a', 'b');
      expect(await driver.broker.groups.finishSet(await claimOne(driver), made)).toEqual({ status: 'finished' });
      expect(await driver.broker.inspection.getTask('default', 'a')).toBeUndefined();
      expect((await driver.queue()).sets).toEqual([]);
    };

    it('creates a pending task, and deletes the set with its tasks', async ({ driver }) => {
      const made = request({ id: 'whole', payload: Buffer.from([0, 255]) });
      await finish(driver, made);
      const queue = await driver.queue();
      expect(queue).toMatchObject({ pending: ['whole'], groups: {}, groupNames: [] });
      expect(queue.tasks).toEqual({
        whole: expect.objectContaining({ state: 'pending', message: made.message, pendingSince: driver.clock.now() }),
      });
      expect((await driver.takeOne()).message).toEqual(made.message);
    });

    it('creates a task that waits, and is remembered', async ({ driver }) => {
      const session = new LinkSession(driver);
      const mark = { type: 'whole', key: 'k', rememberFor: 60 };
      const made = session.waiting('whole', [{ type: 'pay', key: 'k' }], { mark });
      await join(driver, 'g', 'a', 'b');
      const set = await claimOne(driver);
      expect(session.took(await driver.broker.groups.finishSet(set, made)).status).toBe('finished');
      expect(await driver.broker.inspection.getTask('default', 'a')).toBeUndefined();
      await session.expectToWaitAndBeRemembered('whole', 'whole');
    });

    it('creates a unique task that waits, with the lock of a member, or nothing', async ({ driver }) => {
      const session = new LinkSession(driver);
      const uniqueKey = lockKey(driver, 'x');
      const make = (id: string) =>
        session.waiting(id, [{ type: 'pay', key: 'k' }], { message: { uniqueKey }, uniqueTtl: 30 });
      await driver.add({ id: 'member', groupKey: 'g', uniqueKey }, { uniqueTtl: 60 });
      const set = await claimOne(driver);
      expect(await driver.broker.groups.finishSet(set, make('member'))).toEqual({ status: 'conflict' });
      expect(await driver.broker.groups.finishSet(set, make('whole'))).toMatchObject({ status: 'finished' });
      const { locks, tasks } = await driver.queue();
      expect(locks[uniqueKey]?.owner).toBe('whole');
      expect(tasks['whole']).toMatchObject({ uniqueKey });
      await join(driver, 'g', 'c');
      expect(await driver.broker.groups.finishSet(await claimOne(driver), make('other'))).toEqual({
        status: 'duplicate',
      });
    });

    it('creates a scheduled task', async ({ driver }) => {
      await finish(driver, request({ id: 'whole', groupKey: 'h' }, { processAt: driver.now + 9 }));
      await expectQueue(driver, { pending: [], scheduled: [['whole', driver.now + 9]], groups: {} });
    });

    it('creates a task in a group, the same one too', async ({ driver }) => {
      await finish(driver, request({ id: 'whole', groupKey: 'g' }));
      await expectQueue(driver, { pending: [], groups: { g: [['whole', driver.now]] }, groupNames: ['g'] });
      expect((await driver.queue()).tasks['whole']).toMatchObject({ state: 'aggregating', group: 'g' });
    });

    it('creates a unique task, which a member may have been itself', async ({ driver }) => {
      const uniqueKey = lockKey(driver, 'x');
      await driver.add({ id: 'member', groupKey: 'g', uniqueKey }, { uniqueTtl: 60 });
      const made = request({ id: 'whole', uniqueKey }, { uniqueTtl: 30 });
      expect(await driver.broker.groups.finishSet(await claimOne(driver), made)).toEqual({ status: 'finished' });
      const { locks, tasks } = await driver.queue();
      expect(locks[uniqueKey]?.owner).toBe('whole');
      expect(tasks['whole']).toMatchObject({ state: 'pending', uniqueKey });
    });

    it('releases the locks of its tasks, but none that another task holds', async ({ driver }) => {
      const [own, other] = [lockKey(driver, 'own'), lockKey(driver, 'other')];
      await driver.add({ id: 'a', groupKey: 'g', uniqueKey: own }, { uniqueTtl: 60 });
      await driver.add({ id: 'b', groupKey: 'g', uniqueKey: other }, { uniqueTtl: 60 });
      await driver.world.expireLock('default', other);
      await driver.add({ id: 'later', uniqueKey: other }, { uniqueTtl: 60 });
      expect(await driver.broker.groups.finishSet(await claimOne(driver), undefined)).toEqual({ status: 'finished' });
      const { locks } = await driver.queue();
      expect(Object.entries(locks).map(([key, { owner }]) => [key, owner])).toEqual([[other, 'later']]);
    });

    it('changes nothing when the lock of the new task is held, or its id is taken', async ({ driver }) => {
      const uniqueKey = lockKey(driver, 'x');
      await driver.add({ id: 'taken', uniqueKey }, { uniqueTtl: 60 });
      await driver.add({ id: 'a', groupKey: 'g', uniqueKey: lockKey(driver, 'a') }, { uniqueTtl: 60 });
      const set = await claimOne(driver);
      await expectUnchanged(driver, async () => {
        const { groups } = driver.broker;
        const replies = [
          await groups.finishSet(set, request({ id: 'taken', uniqueKey }, { uniqueTtl: 9 })),
          await groups.finishSet(set, request({ id: 'new', uniqueKey }, { uniqueTtl: 9 })),
          await groups.finishSet(set, request({ id: 'taken' })),
          await groups.finishSet(set, request({ id: 'a' })),
        ];
        expect(replies.map(({ status }) => status)).toEqual(['duplicate', 'duplicate', 'conflict', 'conflict']);
      });
    });

    it('does nothing the second time', async ({ driver }) => {
      await join(driver, 'g', 'a');
      const set = await claimOne(driver);
      await driver.broker.groups.finishSet(set, request());
      await expectUnchanged(driver, async () => {
        expect(await driver.broker.groups.finishSet(set, request())).toEqual({ status: 'lost' });
      });
    });

    it('does nothing when the set was reclaimed, also when its tasks are claimed again', async ({ driver }) => {
      await join(driver, 'g', 'a');
      const set = await claimOne(driver);
      driver.clock.advance(AGGREGATION_SECONDS * 1000);
      await driver.broker.groups.reclaimStaleSets('default');
      const again = await claimOne(driver);
      await expectUnchanged(driver, async () => {
        expect(await driver.broker.groups.finishSet(set, request())).toEqual({ status: 'lost' });
      });
      expect(await driver.broker.groups.finishSet(again, request())).toEqual({ status: 'finished' });
    });

    it('deletes a full set in one step', async ({ driver }) => {
      await driver.enqueue(
        Array.from({ length: MAX_SET_SIZE }, (_, n) =>
          request({ groupKey: 'g', uniqueKey: lockKey(driver, `${n}`) }, { uniqueTtl: 60 }),
        ),
      );
      expect(await driver.broker.groups.finishSet(await claimOne(driver), request({ id: 'whole' }))).toEqual({
        status: 'finished',
      });
      const { tasks, locks } = await driver.queue();
      expect([Object.keys(tasks), locks]).toEqual([['whole'], {}]);
    });
  });

  describe('archiveDamagedMembers', () => {
    it('archives members unchanged, and keeps the others', async ({ driver }) => {
      await join(driver, 'g', 'a', 'b', 'c');
      const { sets } = await claim(driver);
      expect(await driver.broker.groups.archiveDamagedMembers(sets[0]!, ['b', 'stranger'])).toBe(1);
      expect(idsOf(await driver.broker.groups.readSet(sets[0]!))).toEqual(['a', 'c']);
      await expectQueue(driver, { archived: [['b', driver.now]] });
      expect(await driver.stateOf('b')).toBe('archived');
    });

    it('leaves a set without members that can be finished, but not into a task', async ({ driver }) => {
      await join(driver, 'g', 'a');
      const { sets } = await claim(driver);
      await driver.broker.groups.archiveDamagedMembers(sets[0]!, ['a']);
      const empty = await driver.broker.groups.readSet(sets[0]!);
      expect(empty.tasks).toEqual([]);
      expect(await driver.broker.groups.finishSet(empty, request())).toEqual({ status: 'lost' });
      expect(await driver.broker.groups.finishSet(empty, undefined)).toEqual({ status: 'finished' });
      await expectQueue(driver, { sets: [], pending: [] });
    });

    it('changes nothing in a set that was reclaimed', async ({ driver }) => {
      await join(driver, 'g', 'a');
      const set = await claimOne(driver);
      driver.clock.advance(AGGREGATION_SECONDS * 1000);
      await driver.broker.groups.reclaimStaleSets('default');
      await expectUnchanged(driver, async () => {
        expect(await driver.broker.groups.archiveDamagedMembers(set, ['a'])).toBe(0);
      });
    });
  });

  describe('reclaimStaleSets', () => {
    it('returns the tasks to their groups, at their old times, once the deadline has passed', async ({ driver }) => {
      const joined = driver.now;
      await join(driver, 'g:with:colons', 'a', 'b');
      await join(driver, 'h', 'c');
      await claim(driver);
      await join(driver, 'h', 'd');
      driver.clock.advance(AGGREGATION_SECONDS * 1000 - 1);
      await expectUnchanged(driver, async () => {
        expect(await driver.broker.groups.reclaimStaleSets('default')).toBe(0);
      });
      driver.clock.advance(1);
      expect(await driver.broker.groups.reclaimStaleSets('default')).toBe(3);
      const scored = (...ids: string[]): [string, number][] => ids.map((id) => [id, joined]);
      await expectQueue(driver, {
        groups: { 'g:with:colons': scored('a', 'b'), h: scored('c', 'd') },
        groupNames: ['g:with:colons', 'h'],
        sets: [],
      });
    });

    it('puts a full set back', async ({ driver }) => {
      await driver.enqueue(Array.from({ length: MAX_SET_SIZE }, () => request({ groupKey: 'g' })));
      const { sets } = await claim(driver);
      driver.clock.advance(AGGREGATION_SECONDS * 1000);
      expect(await driver.broker.groups.reclaimStaleSets('default')).toBe(MAX_SET_SIZE);
      expect((await driver.queue()).groups['g']).toHaveLength(MAX_SET_SIZE);
      expect((await driver.broker.groups.readSet(sets[0]!)).tasks).toEqual([]);
    });
  });

  describe('repairGroups', () => {
    it('changes nothing when nothing is wrong', async ({ driver }) => {
      await join(driver, 'g', 'a');
      await claim(driver);
      await join(driver, 'h', 'b');
      await expectUnchanged(driver, async () => {
        expect(await driver.broker.groups.repairGroups('default')).toEqual({ listed: 0, removed: 0 });
      });
    });
  });

  describe('listOverdueGroups', () => {
    it('lists groups that no task has joined since', async ({ driver }) => {
      await join(driver, 'old', 'a');
      await join(driver, 'new', 'b');
      driver.clock.advance(10_000);
      await join(driver, 'new', 'c');
      const overdue = (cutoff: number, queue = 'default'): Promise<string[]> =>
        driver.broker.groups.listOverdueGroups(queue, () => cutoff);
      expect(await overdue(driver.now - 11)).toEqual([]);
      expect(await overdue(driver.now - 10)).toEqual(['old']);
      expect((await overdue(driver.now)).sort()).toEqual(['new', 'old']);
      expect(await overdue(driver.now, 'empty')).toEqual([]);
    });

    it('uses the cutoff of each group, and finds them among hundreds of groups without one', async ({ driver }) => {
      const others = Array.from({ length: 600 }, (_, n) => request({ groupKey: `mine:${n}` }));
      await driver.enqueue([...others, request({ groupKey: 'a' }), request({ groupKey: 'b' })]);
      const cutoffs: Record<string, number> = { a: driver.now, b: driver.now - 1 };
      expect(await driver.broker.groups.listOverdueGroups('default', (group) => cutoffs[group])).toEqual(['a']);
    });
  });
}
