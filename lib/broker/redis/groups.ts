import { randomUUID } from 'node:crypto';
import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace, QueueKeys } from '../../wire/keys.js';
import {
  AGGREGATION_SECONDS,
  type GroupsRole,
  type AggregationSet,
  type ClaimedSet,
  type ClaimReply,
  type FinishReply,
  type FinishStatus,
  type GroupPolicy,
  MAX_SET_SIZE,
} from '../groups.js';
import { isLinked, type LinkedRequest } from '../links.js';
import { nanoseconds, readScore, requireSeconds } from './scripts/arguments.js';
import type { RedisConnections } from './connection/connections.js';
import { GROUP_SCAN_COUNT, GroupSearch } from './group-search.js';
import type { RedisLinks } from './links.js';
import { LeasedTasks } from './scripts/leased-tasks.js';
import { PackedReader } from './scripts/packed-reader.js';
import { persist } from './producer.js';
import { queueKeys } from './scripts/queue-keys.js';
import { encodeRequest } from './scripts/linked-requests.js';
import { readCaused } from './scripts/caused.js';
import { ownKeys, scanKeys } from './connection/scan.js';
import type { Argument } from './scripts/script-command.js';
import { SCRIPTS, type ScriptName } from './scripts/script-registry.js';
import type { Scripts } from './scripts/scripts.js';

/** Tasks read, or moved back, by one script. */
const MAX_TASKS_PER_CALL = 500;
/** How many pages of group names are searched for groups that nobody aggregates. */
const PAGES_WATCHED = 10;
const RESENT = SCRIPTS.finishSet.argv.indexOf('resent');

/** By the number finish-set.lua returns. */
const STATUS: Readonly<Record<number, FinishStatus>> = { 0: 'finished', 1: 'duplicate', 2: 'conflict', 3: 'lost' };

interface Check extends GroupPolicy {
  readonly group: string;
}

/**
 * Groups and their aggregation, over the connection `consume`. Over `produce`, which waits for
 * Redis, what creates the aggregated task; over `monitor` the searches for damage.
 */
export class RedisGroups implements GroupsRole {
  /** By queue: where a call stopped that found more groups than it was to claim. */
  private readonly searches = new Map<string, GroupSearch>();

  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly links: RedisLinks,
  ) {}

  async claimDueSets(
    queue: string,
    policyOf: (group: string) => GroupPolicy | undefined,
    limit: number,
  ): Promise<ClaimReply> {
    const claimed = new Map<string, ClaimedSet>();
    const stopped = limit > 0 ? this.searches.get(queue) : undefined;
    this.searches.delete(queue);
    if (stopped) await this.claimAlong(stopped, queue, policyOf, limit, claimed);
    if (limit > 0 && claimed.size >= limit) return reply(claimed, floorSeconds(this.clock.now()));
    // From the start: the rest of a search does not know when the groups before it are due.
    return reply(claimed, await this.claimAlong(this.search(queue), queue, policyOf, limit, claimed));
  }

  async readSet(set: ClaimedSet): Promise<AggregationSet> {
    const { taskPrefix } = this.keyspace.queue(set.queue);
    const read = new LeasedTasks(set.queue);
    for (let from = 0; ; from += MAX_TASKS_PER_CALL) {
      const reply = await this.run('readSet', [set.key], [taskPrefix, String(from), String(MAX_TASKS_PER_CALL)]);
      const [seen, packed] = reply as [number, Buffer];
      const reader = new PackedReader(packed);
      while (reader.more()) read.add(reader.text(), set.deadline, reader);
      if (seen < MAX_TASKS_PER_CALL) break;
    }
    const tasks = read.tasks.map(({ message }) => message);
    return { ...set, tasks, damaged: read.damaged.map(({ lease, error }) => ({ id: lease.id, error })) };
  }

  async archiveDamagedMembers(set: ClaimedSet, ids: readonly string[]): Promise<number> {
    if (ids.length === 0) return 0;
    const keys = this.keyspace.queue(set.queue);
    const argv = [keys.taskPrefix, String(set.deadline), String(floorSeconds(this.clock.now())), ...ids];
    return (await this.run('archiveDamagedMembers', setKeys('archiveDamagedMembers', keys, set), argv)) as number;
  }

  async finishSet(set: AggregationSet, request: LinkedRequest | undefined): Promise<FinishReply> {
    const keys = this.keyspace.queue(set.queue);
    const now = this.clock.now();
    // A lock of another queue would be in another slot. It expires.
    const locked = set.tasks.filter(({ uniqueKey }) => uniqueKey.startsWith(keys.base));
    const task = request && encodeRequest(keys, request);
    const argv: Argument[] = [
      keys.taskPrefix,
      requireSeconds(set.deadline, 'the deadline of the set'),
      String(floorSeconds(now)),
      nanoseconds(now),
      String(locked.length),
      '0',
      task?.routes ?? '',
      ...locked.map(({ id }) => id),
      ...(task?.rest ?? []),
    ];
    const further = task?.keys.slice(SCRIPTS.enqueue.keys.length) ?? [];
    const names = [...setKeys('finishSet', keys, set), ...locked.map(({ uniqueKey }) => uniqueKey), ...further];
    const linked = request !== undefined && isLinked(request);
    if (linked) await this.links.register(set.queue);
    const script = linked ? 'finishSetLinked' : 'finishSet';
    const reply = (await persist((attempt) => {
      if (attempt > 1) argv[RESENT] = '1';
      return this.scripts.run('produce', script, names, argv);
    })) as number | [number, Buffer];
    if (typeof reply === 'number') return { status: STATUS[reply]! };
    return { status: STATUS[reply[0]]!, ...readCaused(set.queue, reply[1]) };
  }

  async reclaimStaleSets(queue: string): Promise<number> {
    const keys = this.keyspace.queue(queue);
    const { taskPrefix, groupPrefix } = keys;
    const now = String(floorSeconds(this.clock.now()));
    for (let reclaimed = 0; ;) {
      const argv = [taskPrefix, groupPrefix, now, String(MAX_TASKS_PER_CALL)];
      const reply = await this.run('reclaimStaleSets', queueKeys('reclaimStaleSets', keys), argv);
      const [moved, more] = reply as [number, number];
      reclaimed += moved;
      if (more === 0) return reclaimed;
    }
  }

  async repairGroups(queue: string): Promise<{ listed: number; removed: number }> {
    const keys = this.keyspace.queue(queue);
    const total = { listed: 0, removed: 0 };
    const repair = async (names: readonly string[]): Promise<void> => {
      for (let from = 0; from < names.length; from += GROUP_SCAN_COUNT) {
        const own = queueKeys('repairGroups', keys);
        const groups = names.slice(from, from + GROUP_SCAN_COUNT);
        const reply = await this.scripts.run('monitor', 'repairGroups', [...own, ...groups], [keys.groupPrefix]);
        const [listed, removed] = reply as [number, number];
        total.listed += listed;
        total.removed += removed;
      }
    };
    for await (const found of scanKeys(this.connections, keys.groupPrefix)) {
      const groups = found.filter((key) => key !== keys.waitingTasks && !key.startsWith(keys.fairLinePrefix));
      await repair(await ownKeys(this.connections, this.keyspace, keys, groups));
    }
    for await (const names of this.search(queue).pages()) await repair(names.map((name) => keys.group(name)));
    return total;
  }

  async listDelayedGroups(queue: string): Promise<number | undefined> {
    const keys = this.keyspace.queue(queue);
    const argv = [keys.groupPrefix, String(floorSeconds(this.clock.now()))];
    for (;;) {
      const reply = await this.scripts.run('monitor', 'listDelayedGroups', queueKeys('listDelayedGroups', keys), argv);
      const [next, more] = reply as [Buffer, number];
      if (more === 0) return next.length > 0 ? readScore(next.toString()) : undefined;
    }
  }

  async listOverdueGroups(queue: string, cutoffOf: (group: string) => number | undefined): Promise<string[]> {
    const keys = this.keyspace.queue(queue);
    const some = new Map<string, number>();
    let pages = 0;
    for await (const names of this.search(queue).pages()) {
      for (const name of names) {
        const cutoff = cutoffOf(name);
        if (cutoff !== undefined && some.size < GROUP_SCAN_COUNT) some.set(name, cutoff);
      }
      if (some.size === GROUP_SCAN_COUNT || ++pages === PAGES_WATCHED) break;
    }
    const overdue = [...some].map(async ([name, cutoff]) => {
      const last = await this.connections.run('monitor', 'ZREVRANGE', (client) =>
        client.zrevrange(keys.group(name), 0, 0, 'WITHSCORES'),
      );
      return readScore(last[1] ?? 'inf') <= cutoff ? [name] : [];
    });
    return (await Promise.all(overdue)).flat();
  }

  /**
   * Claims sets along a search. At the limit the search is kept for the next call: to begin anew
   * would check the same groups at each call.
   *
   * @returns when the next of the groups on the way is due
   */
  private async claimAlong(
    search: GroupSearch,
    queue: string,
    policyOf: (group: string) => GroupPolicy | undefined,
    limit: number,
    claimed: Map<string, ClaimedSet>,
  ): Promise<number | undefined> {
    const now = floorSeconds(this.clock.now());
    let nextDue: number | undefined;
    const wait = (until: number): unknown => (nextDue = Math.min(nextDue ?? Infinity, until));
    for await (const names of search.pages()) {
      // A search may come to a group twice, and a call claims one set per group.
      let checks = names.flatMap((group) => (claimed.has(group) ? [] : checkOf(group, policyOf(group))));
      while (checks.length > 0 && (limit === 0 || claimed.size < limit)) {
        const some = await this.claim(queue, checks.slice(0, GROUP_SCAN_COUNT), limit - claimed.size, now);
        for (const set of some.sets) claimed.set(set.group, set);
        if (some.nextDue !== undefined) wait(some.nextDue);
        checks = checks.slice(some.seen);
      }
      if (limit === 0 || claimed.size < limit) continue;
      search.putBack(checks.map(({ group }) => group));
      if (search.ended) break;
      this.searches.set(queue, search);
      return now; // not all were checked
    }
    return nextDue;
  }

  private async claim(
    queue: string,
    checks: readonly Check[],
    limit: number,
    now: number,
  ): Promise<ClaimReply & { seen: number }> {
    const keys = this.keyspace.queue(queue);
    const deadline = now + AGGREGATION_SECONDS;
    const claimable = checks.map(({ group }) => keys.aggregationSet(group, randomUUID()));
    const policies = checks.flatMap(({ group, gracePeriod, maxDelay, maxSize }) => [
      group,
      requireSeconds(gracePeriod, `gracePeriod of group "${group}"`),
      requireSeconds(maxDelay, `maxDelay of group "${group}"`),
      requireSeconds(maxSize, `maxSize of group "${group}"`),
    ]);
    const names = [...queueKeys('claimDueSets', keys), ...checks.map(({ group }) => keys.group(group)), ...claimable];
    const bounds = [now, deadline, limit, MAX_SET_SIZE, checks.length].map(String);
    const reply = await this.run('claimDueSets', names, [...bounds, ...policies]);
    const [seen, next, claimed] = reply as [number, Buffer, number[]];
    const sets = claimed.map((index) => {
      const { group } = checks[index - 1]!;
      return { queue, group, key: claimable[index - 1]!, deadline };
    });
    return { seen, sets, nextDue: next.length > 0 ? readScore(next.toString()) : undefined };
  }

  private search(queue: string): GroupSearch {
    return new GroupSearch(this.connections, this.keyspace.queue(queue).groups);
  }

  private run(name: ScriptName, keys: readonly string[], argv: readonly Argument[]): Promise<unknown> {
    return this.scripts.run('consume', name, keys, argv);
  }
}

const reply = (claimed: ReadonlyMap<string, ClaimedSet>, nextDue: number | undefined): ClaimReply => ({
  sets: [...claimed.values()],
  nextDue,
});

const checkOf = (group: string, policy: GroupPolicy | undefined): Check[] => (policy ? [{ group, ...policy }] : []);

/** The first KEYS of a script for one set. */
function setKeys(name: 'archiveDamagedMembers' | 'finishSet', keys: QueueKeys, set: ClaimedSet): string[] {
  return SCRIPTS[name].keys.map((key) => (key === 'aggregationSet' ? set.key : keys[key]));
}
