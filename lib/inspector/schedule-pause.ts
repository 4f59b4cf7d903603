import { InvalidOptionError, PeriodicEntryNotFoundError } from '../errors.js';
import { requireNonBlank } from '../validation.js';
import type { InspectorBroker } from './inspector-broker.js';
import { queueOfEntry } from './periodic-entries.js';

/** During a deployment, processes may have the same id in different queues: each of them is changed. */
export async function changePause(
  { publications, scheduling }: InspectorBroker,
  action: 'pauseSchedule' | 'resumeSchedule',
  id: string,
): Promise<boolean> {
  requireNonBlank(id, 'entry ID', InvalidOptionError);
  const published = (await publications.schedulerEntries()).filter((entry) => entry.id === id);
  const queues = new Set(published.map(({ enqueueOptions }) => queueOfEntry(enqueueOptions)));
  const found = await Promise.all([...queues].map((queue) => scheduling[action](queue, id)));
  if (found.every((status) => status === 'unknown')) throw new PeriodicEntryNotFoundError(id, published.length > 0);
  return found.includes('changed');
}
