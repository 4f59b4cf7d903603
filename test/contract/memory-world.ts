import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { wellFormed } from '../../lib/broker/memory/queue-store.js';
import type { ManualClock } from '../../lib/clock.js';
import type { World } from './driver.js';

/** The memory broker as a world of the contract suite. */
export function memoryWorld(clock: ManualClock): World & { readonly broker: MemoryBroker } {
  const broker = new MemoryBroker(clock);
  return {
    broker,
    cleanup: () => broker.close(),
    dump: async () => broker.snapshot(),
    nameGroup: async (queue, id, group) => {
      const record = broker.store(queue).tasks.get(wellFormed(id));
      if (!record) throw new Error(`no task "${id}" in "${queue}"`);
      record.group = group;
    },
    schedulerEntries: async () => broker.publishedEntries(),
    enqueueEvents: async (entryId) => broker.publishedEvents(entryId),
    expireLock: async (queue, key) => {
      const { locks } = broker.store(queue);
      locks.release(key, locks.held(clock.now())[key]?.owner ?? '', clock.now());
    },
  };
}
