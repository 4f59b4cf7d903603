import { type Keyspace, type QueueKeys, utcDay } from '../../wire/keys.js';
import { type KeyName, SCRIPTS, type ScriptName } from './script-registry.js';

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

/**
 * The first KEYS of `exchange`. They stay the same until midnight (UTC), and are kept because building them for every call
 * would cost as much as the rest of a small call.
 */
export class ExchangeKeys {
  private readonly byQueue = new Map<string, readonly string[]>();
  private day = NaN;

  constructor(private readonly keyspace: Keyspace) {}

  /** @param now milliseconds since the epoch */
  of(queue: string, now: number): readonly string[] {
    const day = Math.floor(now / DAY);
    if (day !== this.day) {
      this.day = day;
      this.byQueue.clear();
    }
    const known = this.byQueue.get(queue);
    if (known) return known;
    const keys = this.build(queue, utcDay(now));
    this.byQueue.set(queue, keys);
    return keys;
  }

  private build(queue: string, day: string): string[] {
    const keys = this.keyspace.queue(queue);
    const daily = { processedOn: keys.processedOn(day), failedOn: keys.failedOn(day) };
    return SCRIPTS.exchange.keys.map((name) =>
      name === 'processedOn' || name === 'failedOn' ? daily[name] : keys[name],
    );
  }
}
