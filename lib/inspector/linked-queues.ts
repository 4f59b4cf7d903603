import type { Broker } from '../broker/broker.js';

/**
 * The queues in which runs and batches may live. A place of links is forgotten while there is nothing
 * to keep in it, as when all its tasks are in other queues; so all queues count.
 */
export async function linkedQueues({ inspection, links }: Pick<Broker, 'inspection' | 'links'>): Promise<string[]> {
  const [queues, places] = await Promise.all([inspection.queues(), links.places()]);
  return [...new Set([...queues, ...places.filter((place) => !place.startsWith('~'))])];
}
