import { randomUUID } from 'node:crypto';
import type { Keyspace } from '../../wire/keys.js';
import { AGGREGATION_SECONDS, type ClaimedSet, type GroupPolicy, MAX_SET_SIZE, type PolicyOf } from '../groups.js';
import { GROUP_SCAN_COUNT } from './group-search.js';
import { readScore, requireSeconds } from './scripts/arguments.js';
import { queueKeys } from './scripts/queue-keys.js';
import type { Scripts } from './scripts/scripts.js';

/** A group, and when it is due. */
export interface GroupCheck extends GroupPolicy {
  readonly group: string;
}

/** What a look at some groups has found. */
export interface GroupLook {
  readonly sets: ClaimedSet[];
  /** For each group that was looked at, in order: when it is due, in Unix seconds; `undefined`: no tasks wait there. */
  readonly dues: (number | undefined)[];
}

export interface LookOptions {
  /** Sets to claim; 0 only reads. */
  readonly limit: number;
  /** Unix seconds. */
  readonly now: number;
  /** The groups are not from the list, but keys that have changed: one that is not listed is listed, a set is no group. */
  readonly heard?: boolean;
}

/** Looks at some groups of a queue in one step, and claims sets of those that are due. */
export class GroupClaims {
  constructor(
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
  ) {}

  /** @param checks at most GROUP_SCAN_COUNT; it stops at the limit, and when the sets have many tasks */
  async look(queue: string, checks: readonly GroupCheck[], options: LookOptions): Promise<GroupLook> {
    const { limit, now, heard = false } = options;
    const keys = this.keyspace.queue(queue);
    const deadline = now + AGGREGATION_SECONDS;
    const claimable = limit === 0 ? [] : checks.map(({ group }) => keys.aggregationSet(group, randomUUID()));
    const policies = checks.flatMap(({ group, gracePeriod, maxDelay, maxSize }) => [
      group,
      requireSeconds(gracePeriod, `gracePeriod of group "${group}"`),
      requireSeconds(maxDelay, `maxDelay of group "${group}"`),
      requireSeconds(maxSize, `maxSize of group "${group}"`),
    ]);
    const names = [...queueKeys('claimDueSets', keys), ...checks.map(({ group }) => keys.group(group)), ...claimable];
    const bounds = [now, deadline, limit, MAX_SET_SIZE, heard ? 1 : 0, checks.length].map(String);
    const reply = await this.scripts.run('consume', 'claimDueSets', names, [...bounds, ...policies]);
    const [seen, times, claimed] = reply as [number, Buffer, number[]];
    const sets = claimed.map((index) => {
      const { group } = checks[index - 1]!;
      return { queue, group, key: claimable[index - 1]!, deadline };
    });
    const dues = times.toString().split(' ').slice(0, seen);
    return { sets, dues: dues.map((due) => (due === '-' ? undefined : readScore(due))) };
  }
}

/** The checks of the groups that have a policy. */
export const checksOf = (groups: readonly string[], policyOf: PolicyOf): GroupCheck[] =>
  groups.flatMap((group) => {
    const policy = policyOf(group);
    return policy ? [{ group, ...policy }] : [];
  });

/** In parts that one step looks at. */
export function* inSteps<T>(items: readonly T[]): Iterable<readonly T[]> {
  for (let from = 0; from < items.length; from += GROUP_SCAN_COUNT) yield items.slice(from, from + GROUP_SCAN_COUNT);
}
