import { type Clock, floorSeconds } from '../../clock.js';
import type { QueueKeys } from '../../wire/keys.js';
import type { ClaimedSet, ClaimReply, PolicyOf } from '../groups.js';
import { SortedSet } from '../sorted-set.js';
import { type GroupCheck, type GroupLook, checksOf, inSteps, type LookOptions } from './group-claims.js';
import { GROUP_SCAN_COUNT, type GroupSearch } from './group-search.js';

/** More groups are not remembered: a million take a process some 200 MB. */
const MOST_GROUPS = 1_000_000;
/** How often a page of the list is looked at all the same, in milliseconds: should a notice ever get lost. */
const PAGE_INTERVAL_MS = 20_000;
/** How long changes may wait while more groups are due than can be claimed. */
const CHANGES_WAIT_MS = 1_000;
/** Sets of this process that are known to be no groups. */
const MOST_OWN_SETS = 1_000;

export interface GroupIndexDeps {
  readonly clock: Clock;
  readonly keys: QueueKeys;
  /** A search that begins. */
  readonly search: () => GroupSearch;
  readonly look: (checks: readonly GroupCheck[], options: LookOptions) => Promise<GroupLook>;
}

/**
 * When the groups of a queue are due, as far as the policies of one caller go. It reads the list once; from then on it looks at the
 * groups that have changed, and at those that are due by what it knows. Whoever has it reports every change to it from before its
 * first call on, and drops it when one may have been missed.
 */
export class GroupIndex {
  private readonly dues = new SortedSet();
  private heard = new Set<string>();
  private search: GroupSearch;
  private hasReadAll = false;
  private nextPageAt = 0;
  private changesWaitUntil = 0;
  /** The keys of sets that were claimed here, the last ones: most of what is heard while groups are claimed. */
  private readonly ownSets = new Set<string>();

  /** @param most how many groups are remembered */
  constructor(
    private readonly deps: GroupIndexDeps,
    private readonly most = MOST_GROUPS,
  ) {
    this.search = deps.search();
  }

  /** Whether it would have to remember too many. */
  get isFull(): boolean {
    return this.dues.size > this.most;
  }

  /** A key that begins like those of groups has changed: it may be one, or a claimed set. */
  hear(key: string): void {
    const { groupPrefix, waitingTasks, fairLinePrefix } = this.deps.keys;
    if (!key.startsWith(groupPrefix) || key === waitingTasks || key.startsWith(fairLinePrefix)) return;
    if (this.ownSets.has(key)) return;
    this.heard.add(key.slice(groupPrefix.length));
  }

  /** Does what `claimDueSets` does, if it is not full after that. */
  async claim(policyOf: PolicyOf, limit: number): Promise<ClaimReply> {
    const now = floorSeconds(this.deps.clock.now());
    await this.readList(policyOf, now);
    if (this.dues.upTo(now, limit).length < limit || this.deps.clock.elapsed() >= this.changesWaitUntil) {
      await this.lookAtChanged(policyOf, now);
    }
    const sets = this.isFull ? [] : await this.claimDue(policyOf, limit, now);
    const next = this.hasReadAll ? this.dues.first()?.score : now;
    if (sets.length >= limit) return { sets, nextDue: now };
    return { sets, nextDue: next === undefined ? undefined : Math.max(next, now) };
  }

  /** All of it at first, unless it is too long, then a page now and then. */
  private async readList(policyOf: PolicyOf, now: number): Promise<void> {
    const time = this.deps.clock.elapsed();
    if (this.hasReadAll && time < this.nextPageAt) return;
    do {
      const page = await this.search.page();
      if (page) await this.learn(checksOf(page, policyOf), { limit: 0, now });
      else this.hasReadAll = true;
    } while (!this.hasReadAll && !this.isFull);
    this.nextPageAt = time + PAGE_INTERVAL_MS;
    if (this.search.ended) this.search = this.deps.search();
  }

  /** What changes meanwhile is looked at in the next call. */
  private async lookAtChanged(policyOf: PolicyOf, now: number): Promise<void> {
    const { heard } = this;
    this.heard = new Set();
    this.changesWaitUntil = this.deps.clock.elapsed() + CHANGES_WAIT_MS;
    await this.learn(checksOf([...heard], policyOf), { limit: 0, now, heard: true });
  }

  /** Those that are due for longest first, and one set of each. */
  private async claimDue(policyOf: PolicyOf, limit: number, now: number): Promise<ClaimedSet[]> {
    const sets: ClaimedSet[] = [];
    const seen = new Set<string>();
    while (sets.length < limit) {
      const left = Math.min(limit - sets.length, GROUP_SCAN_COUNT);
      const due = this.dues.upTo(now, seen.size + left).filter(({ id }) => !seen.has(id));
      const groups = due.slice(0, left).map(({ id }) => id);
      if (groups.length === 0) break;
      const look = await this.learnStep(checksOf(groups, policyOf), { limit: left, now });
      for (const group of groups.slice(0, look.dues.length)) seen.add(group);
      for (const set of look.sets) this.claimed(set);
      sets.push(...look.sets);
    }
    return sets;
  }

  private claimed({ key }: ClaimedSet): void {
    this.ownSets.add(key);
    if (this.ownSets.size <= MOST_OWN_SETS) return;
    for (const oldest of this.ownSets) return void this.ownSets.delete(oldest);
  }

  private async learn(checks: readonly GroupCheck[], options: LookOptions): Promise<void> {
    for (const some of inSteps(checks)) await this.learnStep(some, options);
  }

  private async learnStep(checks: readonly GroupCheck[], options: LookOptions): Promise<GroupLook> {
    const look = await this.deps.look(checks, options);
    for (const [index, due] of look.dues.entries()) {
      const { group } = checks[index]!;
      if (due === undefined) this.dues.delete(group);
      else if (this.dues.score(group) !== due) this.dues.set(group, due);
    }
    return look;
  }
}
