import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { readMessage, wellFormed } from '../../lib/broker/memory/queue-store.js';
import { floorSeconds, type ManualClock } from '../../lib/clock.js';
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
    completeUnseen: async (queue, id) => {
      const store = broker.store(queue);
      const record = store.tasks.get(wellFormed(id))!;
      const { retention } = readMessage(record);
      store.lease.delete(wellFormed(id));
      record.state = 'completed';
      if (retention > 0) store.completed.set(wellFormed(id), floorSeconds(clock.now()) + retention);
      else store.tasks.delete(wellFormed(id));
    },
    schedulerEntries: async () => broker.publishedEntries(),
    enqueueEvents: async (entryId) => broker.publishedEvents(entryId),
    expireLock: async (queue, key) => {
      const { locks } = broker.store(queue);
      locks.release(key, locks.held(clock.now())[key]?.owner ?? '', clock.now());
    },
  };
}
