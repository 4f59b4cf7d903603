import type { Server } from '../api/fleet-types.js';

/** Whether a running server takes tasks from the queue. A server that is stopping does not. */
export const isServed = (queue: string, servers: readonly Server[]): boolean =>
  servers.some(({ status, queue_priorities }) => status === 'active' && Object.hasOwn(queue_priorities, queue));
