import type { EnqueueRequest, EnqueueStatus, ProducerRole } from '../broker/broker.js';
import type { AsynqEvents } from '../events/events.js';

/** A producer that reports calls that fail by `enqueueFailed`. */
export class ReportingProducer implements ProducerRole {
  constructor(
    private readonly broker: ProducerRole,
    private readonly events: AsynqEvents,
  ) {}

  async enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]> {
    try {
      return await this.broker.enqueue(queue, requests);
    } catch (error) {
      this.events.emit('enqueueFailed', { queue, tasks: requests.length, error });
      throw error;
    }
  }
}
