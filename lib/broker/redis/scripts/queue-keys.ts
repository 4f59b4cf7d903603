import { type Keyspace, type QueueKeys, utcDay } from '../../../wire/keys.js';
import { SCRIPTS, type ScriptName } from './script-registry.js';
import type { KeyName } from './script-shape.js';

const DAY = 86_400_000;

/** Keys that follow from the queue alone. */
type QueueKeyName = Extract<KeyName, keyof QueueKeys> & PlainKeyName;
type PlainKeyName = { [K in keyof QueueKeys]: QueueKeys[K] extends string ? K : never }[keyof QueueKeys];

/** Scripts whose first KEYS are all of that kind. */
type QueueScript = {
  [Name in ScriptName]: (typeof SCRIPTS)[Name]['keys'][number] extends QueueKeyName ? Name : never;
}[ScriptName];

/** The first KEYS of a script, in the order of the registry. */
export function queueKeys(name: QueueScript, keys: QueueKeys): string[] {
  const names: readonly QueueKeyName[] = SCRIPTS[name].keys;
  return names.map((key) => keys[key]);
}

/** The KEYS of lua/shared/fair.lua, which are the last ones. */
export const fairKeys = ({ fairRing, fairHeld, fairShares, fairSlots, fairTotal }: QueueKeys): string[] => [
  fairRing,
  fairHeld,
  fairShares,
  fairSlots,
  fairTotal,
];

/** How keys of fair queues begin. */
export const fairPrefixes = ({ fairLinePrefix, fairRunningPrefix, fairRatePrefix }: QueueKeys): string[] => [
  fairLinePrefix,
  fairRunningPrefix,
  fairRatePrefix,
];

/** The ARGV of shared/fair.lua, which are the last ones. @param allowance for how many milliseconds after the call a task that is taken may wait for its start */
export const fairArguments = (keys: QueueKeys, allowance = 0): string[] => [...fairPrefixes(keys), String(allowance)];

/**
 * The first KEYS of `exchange`. They stay the same until midnight (UTC), and are cached: building
 * them for every call would cost as much as the rest of a small call.
 */
export class ExchangeKeys {
  private readonly byQueue = new Map<string, readonly string[]>();
  private day = NaN;

  constructor(private readonly keyspace: Keyspace) {}

  /**
   * @param now milliseconds since the epoch
   * @param window of a limit of starts, in milliseconds; 0 when there is none
   */
  of(queue: string, now: number, window: number): readonly string[] {
    const day = Math.floor(now / DAY);
    if (day !== this.day) {
      this.day = day;
      this.byQueue.clear();
    }
    const name = window === 0 ? queue : `${window} ${queue}`;
    const known = this.byQueue.get(name);
    if (known) return known;
    const keys = this.build(queue, utcDay(now), window);
    this.byQueue.set(name, keys);
    return keys;
  }

  private build(queue: string, day: string, window: number): string[] {
    const keys = this.keyspace.queue(queue);
    const made = { processedOn: keys.processedOn(day), failedOn: keys.failedOn(day), rate: keys.rate(window) };
    return SCRIPTS.exchange.keys.map((name) =>
      name === 'processedOn' || name === 'failedOn' || name === 'rate' ? made[name] : keys[name],
    );
  }
}
