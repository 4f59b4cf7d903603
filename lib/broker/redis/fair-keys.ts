import { type Clock, floorSeconds } from '../../clock.js';
import { FAIRNESS_HEADER, fairnessOf } from '../../wire/fairness.js';
import type { Keyspace } from '../../wire/keys.js';
import { type FairKeysRole, type KeyTurn, shareAlone, type StoredKey } from '../fair-keys.js';
import type { RedisConnections } from './connection/connections.js';
import { PackedReader } from './scripts/packed-reader.js';
import { nanoseconds, readScore } from './scripts/arguments.js';
import { fairPrefixes, queueKeys } from './scripts/queue-keys.js';
import type { Scripts } from './scripts/scripts.js';

/** Keys that one step finds, about: a millisecond of Redis. */
const FOUND_AT_ONCE = 1_000;
/** Keys that one step describes. */
const DESCRIBED_AT_ONCE = 200;
/** Values in the reply for each key. */
const FIELDS = 6;

type Described = readonly [waiting: number, share: Buffer, taken: number, lookAt: Buffer, wait: number, ids: Buffer[]];

/** Reads the keys of fair queues, over the connection `monitor`. */
export class RedisFairKeys implements FairKeysRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  async sizes(queue: string, held: boolean, sized: boolean): Promise<ReadonlyMap<string, number>> {
    const { fairRing, fairHeld, fairShares, fairSlots } = this.keyspace.queue(queue);
    const found = new Map<string, number>();
    for (const source of held ? [fairHeld] : [fairRing, fairHeld]) await this.scan(queue, source, sized, found);
    if (held) return found;
    // Every held key has a share: here is also one that was moved between the two meanwhile.
    const others = new Map<string, number>();
    for (const source of [fairShares, fairSlots]) await this.scan(queue, source, false, others);
    const missing = [...others.keys()].filter((key) => !found.has(key));
    for (const { key, waiting } of await this.describe(queue, missing)) found.set(key, waiting);
    return found;
  }

  private async scan(queue: string, source: string, sized: boolean, found: Map<string, number>): Promise<void> {
    const { fairLinePrefix } = this.keyspace.queue(queue);
    for (let cursor = '0'; ;) {
      const argv = [fairLinePrefix, cursor, String(FOUND_AT_ONCE), sized ? '1' : '0'];
      const [next, packed] = (await this.scripts.run('monitor', 'listKeys', [source], argv)) as [Buffer, Buffer];
      const reader = new PackedReader(packed);
      while (reader.more()) found.set(reader.text(), sized ? reader.count() : 0);
      cursor = next.toString();
      if (cursor === '0') return;
    }
  }

  async describe(queue: string, keys: readonly string[], named = 0): Promise<StoredKey[]> {
    const names = this.keyspace.queue(queue);
    const found: StoredKey[] = [];
    for (let first = 0; first < keys.length; first += DESCRIBED_AT_ONCE) {
      const some = keys.slice(first, first + DESCRIBED_AT_ONCE);
      const now = this.clock.now();
      const when = [String(floorSeconds(now)), nanoseconds(now)];
      const argv = [names.taskPrefix, ...when, ...fairPrefixes(names), String(named), ...some];
      const reply = await this.scripts.run('monitor', 'describeKeys', queueKeys('describeKeys', names), argv);
      const values = reply as unknown[];
      found.push(
        ...some.map((key, i) => view(key, values.slice(i * FIELDS, (i + 1) * FIELDS) as unknown as Described)),
      );
    }
    return found;
  }

  async turnOf(queue: string, key: string, id: string): Promise<KeyTurn | undefined> {
    const { fairRing, fairLinePrefix } = this.keyspace.queue(queue);
    const [ahead, inRing, turns] = await Promise.all([
      this.connections.run('monitor', 'ZRANK', (client) => client.zrank(fairLinePrefix + key, id)),
      this.connections.run('monitor', 'ZCARD', (client) => client.zcard(fairRing)),
      this.connections.run('monitor', 'ZSCORE', (client) => client.zscore(fairRing, key)),
    ]);
    return ahead === null ? undefined : { ahead, others: turns === null ? inRing : inRing - 1 };
  }
}

function view(key: string, [waiting, text, taken, lookAt, startsIn, ids]: Described): StoredKey {
  const share = fairnessOf({ [FAIRNESS_HEADER]: text.toString() }) ?? shareAlone(key);
  return {
    key,
    waiting,
    share,
    taken,
    holders: ids.map(String),
    startsIn,
    lookAt: lookAt.length > 0 ? readScore(lookAt.toString()) : undefined,
  };
}
