import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace, QueueKeys } from '../../wire/keys.js';
import {
  type GroupsRole,
  type AggregationSet,
  type ClaimedSet,
  type ClaimReply,
  type FinishReply,
  type FinishStatus,
  type GroupsWatch,
  type PolicyOf,
} from '../groups.js';
import { isLinked, type LinkedRequest } from '../links.js';
import { nanoseconds, readScore, requireSeconds } from './scripts/arguments.js';
import { checksOf, GroupClaims } from './group-claims.js';
import type { GroupIndexDeps } from './group-index.js';
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
import { WatchedGroups, type WatchedQueues } from './watched-groups.js';

/** Tasks read, or moved back, by one script. */
const MAX_TASKS_PER_CALL = 500;
/** How many pages of group names are searched for groups that nobody aggregates, and by a server that helps others. */
const PAGES_WATCHED = 10;
const RESENT = SCRIPTS.finishSet.argv.indexOf('resent');

/** By the number finish-set.lua returns. */
const STATUS: Readonly<Record<number, FinishStatus>> = { 0: 'finished', 1: 'duplicate', 2: 'conflict', 3: 'lost' };

/** A way along a search. */
interface Way {
  readonly queue: string;
  readonly policyOf: PolicyOf;
  readonly limit: number;
  readonly claimed: Map<string, ClaimedSet>;
  /** Pages to go. */
  readonly pages: number;
  /** Where a search is kept that has not come to all groups. */
  readonly stopped: Map<string, GroupSearch>;
}

/**
 * Groups and their aggregation, over the connection `consume`. Over `produce`, which waits for
 * Redis, what reads a claimed set, and what creates the aggregated task; over `monitor` the searches for damage.
 */
export class RedisGroups implements GroupsRole {
  /** By queue: where a call stopped that found more groups than it was to claim. */
  private readonly searches = new Map<string, GroupSearch>();
  /** The same for calls that help. */
  private readonly helping = new Map<string, GroupSearch>();
  private readonly watched: WatchedQueues = new Set();
  private readonly claims: GroupClaims;

  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly links: RedisLinks,
  ) {
    this.claims = new GroupClaims(scripts, keyspace);
  }

  async claimDueSets(queue: string, policyOf: PolicyOf, limit: number, watch?: GroupsWatch): Promise<ClaimReply> {
    const watched = limit > 0 && watch instanceof WatchedGroups ? watch : undefined;
    return (await watched?.claim(policyOf, limit)) ?? this.claimOfAll(queue, policyOf, limit, watched);
  }

  watchGroups(queue: string): GroupsWatch {
    const keys = this.keyspace.queue(queue);
    const look: GroupIndexDeps['look'] = (checks, options) => this.claims.look(queue, checks, options);
    const deps = { clock: this.clock, keys, search: () => this.search(queue), look };
    return new WatchedGroups(this.connections, deps, this.watched);
  }

  async helpToClaim(queue: string, policyOf: PolicyOf, limit: number, busy: number): Promise<ClaimedSet[]> {
    const { aggregationSets } = this.keyspace.queue(queue);
    const sets = await this.connections.run('consume', 'ZCARD', (client) => client.zcard(aggregationSets));
    if (sets < busy) return [];
    const claimed = new Map<string, ClaimedSet>();
    const search = this.helping.get(queue) ?? this.search(queue);
    this.helping.delete(queue);
    await this.claimAlong(search, { queue, policyOf, limit, claimed, pages: PAGES_WATCHED, stopped: this.helping });
    return [...claimed.values()];
  }

  async readSet(set: ClaimedSet): Promise<AggregationSet> {
    const { taskPrefix } = this.keyspace.queue(set.queue);
    const read = new LeasedTasks(set.queue);
    for (let from = 0; ; from += MAX_TASKS_PER_CALL) {
      const argv = [taskPrefix, String(from), String(MAX_TASKS_PER_CALL)];
      // If a lost connection made it fail, the set would go back two minutes later.
      const reply = await persist(() => this.scripts.run('produce', 'readSet', [set.key], argv));
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

  private async claimOfAll(
    queue: string,
    policyOf: PolicyOf,
    limit: number,
    watched: WatchedGroups | undefined,
  ): Promise<ClaimReply> {
    const claimed = new Map<string, ClaimedSet>();
    const way: Way = { queue, policyOf, limit, claimed, pages: Infinity, stopped: this.searches };
    const stopped = limit > 0 ? this.searches.get(queue) : undefined;
    this.searches.delete(queue);
    if (stopped) {
      await this.claimAlong(stopped, way);
      watched?.hasSeen(stopped.seen);
    }
    if (limit > 0 && claimed.size >= limit) return reply(claimed, floorSeconds(this.clock.now()));
    // From the start: the rest of a search does not know when the groups before it are due.
    const search = this.search(queue);
    const nextDue = await this.claimAlong(search, way);
    watched?.hasSeen(search.seen);
    return reply(claimed, nextDue);
  }

  /**
   * Claims sets along a search. At the limit, or after so many pages, the search is kept for the next call: to begin again would check
   * the same groups at each call.
   *
   * @returns when the next of the groups that it came to is due
   */
  private async claimAlong(search: GroupSearch, way: Way): Promise<number | undefined> {
    const { queue, policyOf, limit, claimed, stopped } = way;
    const now = floorSeconds(this.clock.now());
    let [pages, next] = [0, Infinity];
    for await (const names of search.pages()) {
      let checks = checksOf(names, policyOf);
      search.seen += checks.length;
      // A search may come to a group twice, and a call claims one set per group.
      checks = checks.filter(({ group }) => !claimed.has(group));
      while (checks.length > 0 && (limit === 0 || claimed.size < limit)) {
        const options = { limit: limit - claimed.size, now };
        const { sets, dues } = await this.claims.look(queue, checks.slice(0, GROUP_SCAN_COUNT), options);
        for (const set of sets) claimed.set(set.group, set);
        for (const due of dues) next = Math.min(next, Math.max(due ?? Infinity, now));
        checks = checks.slice(dues.length);
      }
      const isAtLimit = limit > 0 && claimed.size >= limit;
      if (!isAtLimit && ++pages < way.pages) continue;
      search.putBack(checks.map(({ group }) => group));
      search.seen -= checks.length;
      if (search.ended) break;
      stopped.set(queue, search);
      return now; // not all were checked
    }
    return next === Infinity ? undefined : next;
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

/** The first KEYS of a script for one set. */
function setKeys(name: 'archiveDamagedMembers' | 'finishSet', keys: QueueKeys, set: ClaimedSet): string[] {
  return SCRIPTS[name].keys.map((key) => (key === 'aggregationSet' ? set.key : keys[key]));
}
