import type { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ClaimReply, GroupPolicy, GroupsWatch } from '../../lib/broker/groups.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { ManualClock } from '../../lib/clock.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import { clientsOf, connectionsTo, observe, ownServer } from './support.js';

const GROUPS = 1_000;
const POLICY: GroupPolicy = { gracePeriod: 60, maxDelay: 0, maxSize: 3 };
const keys = new Keyspace().queue('default');

interface Rig {
  readonly port: number;
  readonly broker: RedisBroker;
  readonly client: Redis;
  readonly clock: ManualClock;
  readonly watch: GroupsWatch;
  readonly now: () => number;
  /** Claims with the watch. */
  readonly claim: (limit?: number) => Promise<ClaimReply>;
  /** Claims until these groups were claimed: a notice takes its time. */
  readonly expectClaimed: (...groups: string[]) => Promise<void>;
  /** Calls of a command so far, those of scripts included. */
  readonly calls: (name: string) => Promise<number>;
}

/** A queue with many groups that are not due, looked at once. */
async function setUp(user: object = {}, groups = GROUPS): Promise<Rig> {
  const { port } = await ownServer();
  const client = observe(port);
  if ('username' in user)
    await client.call('ACL', 'SETUSER', 'worker', 'on', '>secret', '~*', '&*', '+@all', '-client|tracking');
  const clock = new ManualClock(1_700_000_000_000);
  const broker = new RedisBroker(connectionsTo({ host: '127.0.0.1', port, ...user }), { clock });
  const requests = Array.from({ length: groups }, (_, n) => request({ groupKey: `user:${n}` }));
  await broker.producer.enqueue('default', requests);
  const watch = broker.groups.watchGroups('default');
  onTestFinished(() => watch.close());
  const claim = (limit = 10) => broker.groups.claimDueSets('default', () => POLICY, limit, watch);
  const expectClaimed = async (...expected: string[]): Promise<void> => {
    const claimed: string[] = [];
    await vi.waitFor(async () => {
      const { sets } = await claim();
      claimed.push(...sets.map(({ group }) => group));
      expect(claimed.toSorted()).toEqual(expected.toSorted());
    });
  };
  const calls = async (name: string): Promise<number> =>
    Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(await client.info('commandstats'))?.[1] ?? 0);
  expect((await claim()).sets).toEqual([]);
  return { port, broker, client, clock, watch, now: () => clock.now() / 1000, claim, expectClaimed, calls };
}

const hears = async (client: Redis): Promise<boolean> =>
  (await clientsOf(client)).some(({ flags }) => flags.includes('B'));

/** The same, once the groups are remembered. */
async function following(): Promise<Rig> {
  const rig = await setUp();
  await vi.waitFor(async () => expect(await hears(rig.client)).toBe(true));
  await vi.waitFor(async () => {
    const before = await rig.calls('zcard');
    await rig.claim();
    expect((await rig.calls('zcard')) - before).toBeLessThan(10);
  });
  return rig;
}

/** As a client of Go joins a group: no key of ours. */
async function join({ client, now }: Rig, group: string, ids: string[], isListed = true): Promise<void> {
  const transaction = client.multi();
  for (const id of ids) {
    transaction.hset(keys.task(id), 'msg', '', 'state', 'aggregating', 'group', group);
    transaction.zadd(keys.group(group), now(), id);
  }
  if (isListed) transaction.sadd(keys.groups, group);
  await transaction.exec();
}

describe('groups that are watched', () => {
  it('are looked at once, not again while nothing happens, except for a page now and then', async () => {
    const rig = await following();
    const [looks, scans] = [await rig.calls('zcard'), await rig.calls('sscan')];
    for (let second = 0; second < 15; second++) {
      rig.clock.advance(1_000);
      expect(await rig.claim()).toEqual({ sets: [], nextDue: 1_700_000_060 });
    }
    expect(await rig.calls('sscan')).toBe(scans);
    expect(await rig.calls('zcard')).toBe(looks);
    rig.clock.advance(10_000);
    await rig.claim();
    expect(await rig.calls('sscan')).toBe(scans + 1);
    expect((await rig.calls('zcard')) - looks).toBeLessThan(200);
  });

  it('are all claimed when they are due by time, each once', async () => {
    const rig = await following();
    rig.clock.advance(60_000);
    const claimed: string[] = [];
    for (let left = GROUPS; left > 0; left -= 10) {
      const { sets, nextDue } = await rig.claim();
      expect(nextDue).toBe(rig.now());
      claimed.push(...sets.map(({ group }) => group));
    }
    expect(new Set(claimed).size).toBe(GROUPS);
    await vi.waitFor(async () => expect(await rig.claim()).toEqual({ sets: [], nextDue: undefined }));
    expect(await rig.client.smembers(keys.groups)).toEqual([]);
  });

  it('are claimed once where two watch them, and the other goes on when one has died', async () => {
    const rig = await following();
    const second = new RedisBroker(connectionsTo({ host: '127.0.0.1', port: rig.port }), { clock: rig.clock });
    const watch = second.groups.watchGroups('default');
    const claimToo = () => second.groups.claimDueSets('default', () => POLICY, 10, watch);
    await claimToo();
    await vi.waitFor(async () =>
      expect((await clientsOf(rig.client)).filter(({ flags }) => flags.includes('B'))).toHaveLength(2),
    );
    rig.clock.advance(60_000);
    const claimed: string[] = [];
    while (claimed.length < GROUPS / 2) {
      const replies = await Promise.all([rig.claim(), claimToo()]);
      claimed.push(...replies.flatMap(({ sets }) => sets.map(({ group }) => group)));
    }
    await rig.watch.close(); // what it has claimed stays claimed
    await vi.waitFor(async () => {
      claimed.push(...(await claimToo()).sets.map(({ group }) => group));
      expect(claimed.length).toBe(GROUPS);
    });
    expect(new Set(claimed).size).toBe(GROUPS);
    await watch.close();
  });

  it('are watched though each look has found as many that are due as it may claim', async () => {
    const rig = await setUp({}, 150);
    const requests = Array.from({ length: 450 }, (_, n) => request({ groupKey: `full:${n % 150}` }));
    await rig.broker.producer.enqueue('default', requests);
    await rig.watch.close();
    await vi.waitFor(async () => expect(await hears(rig.client)).toBe(false));
    const watch = rig.broker.groups.watchGroups('default');
    for (let claimed = 0; claimed < 120; claimed += 10) {
      expect((await rig.broker.groups.claimDueSets('default', () => POLICY, 10, watch)).sets).toHaveLength(10);
    }
    await vi.waitFor(async () => expect(await hears(rig.client)).toBe(true));
    await watch.close();
  });

  it('are found when another client fills one, or makes a new one', async () => {
    const rig = await following();
    await join(rig, 'user:7', ['a', 'b']);
    await join(rig, 'new', ['c', 'd', 'e', 'f']);
    await rig.expectClaimed('user:7', 'new');
    expect(await rig.client.zrange(keys.group('new'), '0', '-1')).toEqual(['f']);
    rig.clock.advance(20_000);
    await join(rig, 'late', ['g']);
    rig.clock.advance(40_000);
    // Those that have waited since the start come first.
    const groups: string[] = [];
    for (let left = GROUPS; left > 0; left -= 10) groups.push(...(await rig.claim()).sets.map(({ group }) => group));
    expect(groups).toContain('new');
    expect(groups).not.toContain('late');
    rig.clock.advance(20_000);
    await rig.expectClaimed('late');
  });

  it('wait anew for the grace period when a task joins', async () => {
    const rig = await following();
    rig.clock.advance(50_000);
    await join(rig, 'user:7', ['a']);
    rig.clock.advance(10_000);
    const groups = new Set<string>();
    for (let left = GROUPS; left > 0; left -= 10) for (const { group } of (await rig.claim()).sets) groups.add(group);
    expect(groups.size).toBe(GROUPS - 1);
    expect(groups.has('user:7')).toBe(false);
    await vi.waitFor(async () => expect(await rig.claim()).toEqual({ sets: [], nextDue: rig.now() + 50 }));
  });

  it('are listed when somebody has put tasks into one and not listed it, as Go does', async () => {
    const rig = await following();
    await join(rig, 'stranded', ['a', 'b'], false);
    await vi.waitFor(async () => {
      await rig.claim();
      expect(await rig.client.sismember(keys.groups, 'stranded')).toBe(1);
    });
    await join(rig, 'stranded', ['c'], false);
    await rig.expectClaimed('stranded');
  });

  it('do not include claimed sets, waiting tasks and the lines of a fair queue', async () => {
    const rig = await following();
    for (const group of ['asynq:waiting', 'asynq:fair:k']) await join(rig, group, ['x', 'y', 'z'], false);
    await join(rig, 'user:7', ['a', 'b']);
    await rig.expectClaimed('user:7');
    await join(rig, 'user:8', ['c', 'd']);
    await rig.expectClaimed('user:8'); // the notices of the claim before are heard by now
    expect(await rig.client.scard(keys.groups)).toBe(GROUPS - 2);
    expect(await rig.client.zcard(keys.aggregationSets)).toBe(2);
  });

  it('are found when a set goes back to its group', async () => {
    const rig = await following();
    await join(rig, 'user:7', ['a', 'b']);
    await rig.expectClaimed('user:7');
    await rig.client.zadd(keys.aggregationSets, 1, (await rig.client.zrange(keys.aggregationSets, '0', '0'))[0]!);
    expect(await rig.broker.groups.reclaimStaleSets('default')).toBe(3);
    await rig.expectClaimed('user:7');
  });

  it('are all looked at again when the notices were cut off, or the database was flushed', async () => {
    const rig = await following();
    await rig.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await join(rig, 'user:7', ['a', 'b']);
    await rig.expectClaimed('user:7');
    await vi.waitFor(async () => expect(await hears(rig.client)).toBe(true));
    await rig.client.flushall();
    await join(rig, 'after', ['c', 'd', 'e']);
    await rig.expectClaimed('after');
    await vi.waitFor(async () => expect(await rig.claim()).toEqual({ sets: [], nextDue: undefined }));
  });

  it('are all looked at while this user must not ask for notices', async () => {
    const rig = await setUp({ username: 'worker', password: 'secret' });
    const before = await rig.calls('zcard');
    await rig.claim();
    expect((await rig.calls('zcard')) - before).toBeGreaterThanOrEqual(GROUPS);
    expect(await hears(rig.client)).toBe(false);
    await join(rig, 'user:7', ['a', 'b']);
    await rig.expectClaimed('user:7');
  });

  it('cost no connection when they are few, and none when the watch is closed', async () => {
    const few = await setUp({}, 50);
    await few.claim();
    await few.claim();
    expect(await hears(few.client)).toBe(false);
    const many = await following();
    await many.watch.close();
    await vi.waitFor(async () => expect(await hears(many.client)).toBe(false));
    await join(many, 'user:7', ['a', 'b']);
    await many.expectClaimed('user:7');
    expect(await hears(many.client)).toBe(false);
  });
});
