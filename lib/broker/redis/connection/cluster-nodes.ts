import type { Cluster } from 'ioredis';
import { BrokerUnavailableError } from '../../../errors.js';
import { slotOf } from './slot.js';

/**
 * `host:port` of the master with the key, as far as this client knows. @throws
 * BrokerUnavailableError when none is known
 */
export function masterOf(cluster: Cluster, key: string): string {
  const slot = slotOf(key);
  const master = cluster.slots[slot]?.[0];
  if (master !== undefined) return master;
  throw new BrokerUnavailableError(`Redis is unavailable: no node of the cluster is known to hold slot ${slot}`);
}

/** Reads which node has which slots. Always resolves: after a failure the next call may succeed. */
export function refreshSlots(cluster: Cluster): Promise<void> {
  return new Promise((resolve) => {
    cluster.refreshSlotsCache(() => resolve());
  });
}
