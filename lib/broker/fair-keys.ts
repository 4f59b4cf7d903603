import type { FairShare } from '../wire/fairness.js';

/*
 * The keys of a fair queue, as an operator sees them. These calls only read, and each step is bounded; to find all keys takes a step per
 * thousand. The key of tasks without one is ''.
 */

/** A key as it is now. */
export interface StoredKey {
  readonly key: string;
  /** Tasks in its line. */
  readonly waiting: number;
  /** Weight and limits, as the last task that was enqueued says; of a key without a line, or without limits, those of a key alone. */
  readonly share: FairShare;
  /** How many tasks have a slot of it, if it has a concurrency: those that run, or that have had their turn and wait for a Go server. */
  readonly taken: number;
  /** Ids of some of these. */
  readonly holders: readonly string[];
  /** Milliseconds until its rate lets more start; 0 while some may. */
  readonly startsIn: number;
  /** When a key that is held is looked at again, in milliseconds since the epoch; `undefined` for one that is not held. */
  readonly lookAt: number | undefined;
}

/** Where a task is in the line of its key. */
export interface KeyTurn {
  /** Tasks of the key before it. */
  readonly ahead: number;
  /** Other keys that have their turns. */
  readonly others: number;
}

export interface FairKeysRole {
  /** The keys with tasks in lines or with slots taken, and how many tasks wait, if `sized`; else 0. @param held only keys that are held */
  sizes(queue: string, held: boolean, sized: boolean): Promise<ReadonlyMap<string, number>>;
  /** In the same order. @param named of how many tasks with a slot the ids are wanted; default 0 */
  describe(queue: string, keys: readonly string[], named?: number): Promise<StoredKey[]>;
  /** `undefined` when the task is not in the line of the key. */
  turnOf(queue: string, key: string, id: string): Promise<KeyTurn | undefined>;
}

/** A key of which nothing else is known. */
export const shareAlone = (key: string): FairShare => ({ key, weight: 1, concurrency: 0, rate: 0, window: 1 });
