import type { EnqueueRequest } from '../broker/broker.js';
import type { BoundedProducing } from '../enqueue/producing.js';
import type { AsynqEvents } from '../events/events.js';

/** A producer that reports calls that fail by `enqueueFailed`. */
export class ReportingProducer implements BoundedProducing {
  constructor(
    private readonly producer: BoundedProducing,
    private readonly events: AsynqEvents,
  ) {}

  enqueue(queue: string, requests: readonly EnqueueRequest[]): ReturnType<BoundedProducing['enqueue']> {
    return this.reporting(queue, requests, this.producer.enqueue(queue, requests));
  }

  enqueueBounded(
    queue: string,
    requests: readonly EnqueueRequest[],
    maxPending: number,
  ): ReturnType<BoundedProducing['enqueueBounded']> {
    return this.reporting(queue, requests, this.producer.enqueueBounded(queue, requests, maxPending));
  }

  private reporting<T>(queue: string, requests: readonly EnqueueRequest[], call: Promise<T>): Promise<T> {
    call.catch((error: unknown) => this.events.emit('enqueueFailed', { queue, tasks: requests.length, error }));
    return call;
  }
}
