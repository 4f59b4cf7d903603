import { type FairKeysRole, type KeyTurn, shareAlone, type StoredKey } from '../fair-keys.js';
import { FairPending } from './fair-pending.js';
import type { MemoryState } from './memory-state.js';
import { type QueueStore, wellFormed } from './queue-store.js';

export class MemoryFairKeys implements FairKeysRole {
  constructor(private readonly state: MemoryState) {}

  async sizes(queue: string, held: boolean): Promise<ReadonlyMap<string, number>> {
    return this.state.change(queue, (store, now) => new Map(linesOf(store)?.sizes(held, now)));
  }

  async describe(queue: string, keys: readonly string[], named = 0): Promise<StoredKey[]> {
    return this.state.change(queue, (store, now) =>
      keys.map(wellFormed).map((key) => linesOf(store)?.describe(key, named, now) ?? emptyKey(key)),
    );
  }

  async turnOf(queue: string, key: string, id: string): Promise<KeyTurn | undefined> {
    return this.state.change(queue, (store) => linesOf(store)?.turnOf(wellFormed(key), wellFormed(id)));
  }
}

const linesOf = ({ pending }: QueueStore): FairPending | undefined =>
  pending instanceof FairPending ? pending : undefined;

const emptyKey = (key: string): StoredKey => {
  const nothing = { waiting: 0, taken: 0, holders: [], startsIn: 0, lookAt: undefined };
  return { key, share: shareAlone(key), ...nothing };
};
