import { type GroupPolicy, MAX_SET_SIZE } from '../../broker/groups.js';
import { ceilSeconds } from '../../clock.js';
import { type Duration, parseDuration } from '../../duration.js';
import { InvalidOptionError } from '../../errors.js';
import { describe, rejectUnknownKeys, requireInteger, requireNonBlank, requireObject } from '../../validation.js';

/**
 * When a group is aggregated: asynq's GroupGracePeriod, GroupMaxDelay and GroupMaxSize. Times in
 * whole seconds, rounded up.
 */
export interface GroupOptions {
  /** A group is due when no task has joined it for this time. Default 1 minute, at least 1 s. */
  groupGracePeriod?: Duration;
  /**
   * A group is due when its first task has waited this long, even while others join. Default 0: no
   * limit; else at least 1 second.
   */
  groupMaxDelay?: Duration;
  /**
   * A group of this many tasks is due at once, and no run of an aggregator gets more. Default 0: no
   * limit, but never more than 5,000.
   */
  groupMaxSize?: number;
}

/** Other values for some groups. */
export interface GroupOverride extends GroupOptions {
  /** The queue it applies to. Default: every queue. */
  queue?: string;
  /** A prefix of the groups it applies to. Default: every group. */
  group?: string;
}

export interface ResolvedGroupOptions {
  readonly policyOf: (queue: string, group: string) => GroupPolicy;
  /** Every policy a group may have. */
  readonly policies: readonly GroupPolicy[];
}

export const GROUP_OPTION_NAMES = ['groupGracePeriod', 'groupMaxDelay', 'groupMaxSize'] as const;
const OVERRIDE_NAMES: readonly (keyof GroupOverride)[] = [...GROUP_OPTION_NAMES, 'queue', 'group'];

const DEFAULT_POLICY: GroupPolicy = { gracePeriod: 60, maxDelay: 0, maxSize: 0 };

interface Rule {
  readonly queue: string | undefined;
  readonly group: string;
  readonly policy: Partial<GroupPolicy>;
}

/**
 * @param overrides later ones win over earlier ones, option by option
 * @throws InvalidOptionError naming the option, its value and the remedy
 */
export function resolveGroupOptions(options: GroupOptions, overrides: unknown = []): ResolvedGroupOptions {
  const base: GroupPolicy = { ...DEFAULT_POLICY, ...readPolicy(options, '') };
  if (!Array.isArray(overrides)) {
    throw new InvalidOptionError(`groupOverrides must be an array, not ${describe(overrides)}`);
  }
  const rules = overrides.map(readRule);
  const apply = (matching: readonly Rule[]): GroupPolicy =>
    Object.assign({ ...base }, ...matching.map(({ policy }) => policy));
  return {
    policyOf: (queue, group) =>
      rules.length === 0
        ? base
        : apply(rules.filter((rule) => (rule.queue ?? queue) === queue && group.startsWith(rule.group))),
    policies: [base, ...rules.map((rule) => apply([rule]))],
  };
}

function readRule(given: unknown, index: number): Rule {
  const where = `groupOverrides[${index}]`;
  const override: GroupOverride = requireObject(given, where, InvalidOptionError);
  rejectUnknownKeys(override, OVERRIDE_NAMES, `option of ${where}:`, InvalidOptionError);
  const { queue, group } = override;
  if (queue !== undefined) requireNonBlank(queue, `${where}.queue`, InvalidOptionError);
  if (group !== undefined) requireNonBlank(group, `${where}.group`, InvalidOptionError);
  return { queue, group: group ?? '', policy: readPolicy(override, `${where}.`) };
}

/** The given options, in the units of the broker. */
function readPolicy(options: GroupOptions, where: string): Partial<GroupPolicy> {
  const { groupGracePeriod, groupMaxDelay, groupMaxSize } = options;
  const policy: { -readonly [K in keyof GroupPolicy]?: number } = {};
  if (groupGracePeriod !== undefined) policy.gracePeriod = seconds(groupGracePeriod, `${where}groupGracePeriod`, false);
  if (groupMaxDelay !== undefined) policy.maxDelay = seconds(groupMaxDelay, `${where}groupMaxDelay`, true);
  if (groupMaxSize !== undefined) {
    const bounds = { least: 0, most: MAX_SET_SIZE };
    policy.maxSize = requireInteger(groupMaxSize, `${where}groupMaxSize`, InvalidOptionError, bounds);
  }
  return policy;
}

function seconds(value: Duration, name: string, orZero: boolean): number {
  const milliseconds = parseDuration(value, name);
  if (milliseconds >= 1000 || (orZero && milliseconds === 0)) return ceilSeconds(milliseconds);
  throw new InvalidOptionError(
    `${name} must be at least one second${orZero ? ', or 0 for no limit' : ''}, not ${describe(value)}`,
  );
}
