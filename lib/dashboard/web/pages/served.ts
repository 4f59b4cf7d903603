import type { Server } from '../api/fleet-types.js';

/** Whether a server that runs takes tasks from the queue. One that is stopping takes none. */
export const isServed = (queue: string, servers: readonly Server[]): boolean =>
  servers.some(({ status, queue_priorities }) => status === 'active' && Object.hasOwn(queue_priorities, queue));
