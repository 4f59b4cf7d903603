import type { EnqueueRequest } from '../broker/broker.js';
import type { EnqueueReply, Producing } from '../enqueue/producing.js';
import type { AsynqEvents } from '../events/events.js';

/** A producer that reports calls that fail by `enqueueFailed`. */
export class ReportingProducer implements Producing {
  constructor(
    private readonly broker: Producing,
    private readonly events: AsynqEvents,
  ) {}

  async enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<readonly EnqueueReply[]> {
    try {
      return await this.broker.enqueue(queue, requests);
    } catch (error) {
      this.events.emit('enqueueFailed', { queue, tasks: requests.length, error });
      throw error;
    }
  }
}
