import type { EnqueueRequest } from '../broker/broker.js';
import type { BoundedProducing, Producing } from '../enqueue/producing.js';
import type { AsynqEvents } from '../events/events.js';

/** A producer that reports calls that fail by `enqueueFailed`. */
export class ReportingProducer<P extends Producing = Producing> implements Producing {
  constructor(
    protected readonly producer: P,
    private readonly events: AsynqEvents,
  ) {}

  enqueue(queue: string, requests: readonly EnqueueRequest[]): ReturnType<P['enqueue']> {
    return this.reporting(queue, requests, this.producer.enqueue(queue, requests)) as ReturnType<P['enqueue']>;
  }

  protected reporting<T>(queue: string, requests: readonly EnqueueRequest[], call: Promise<T>): Promise<T> {
    call.catch((error: unknown) => this.events.emit('enqueueFailed', { queue, tasks: requests.length, error }));
    return call;
  }
}

export class BoundedReportingProducer extends ReportingProducer<BoundedProducing> implements BoundedProducing {
  enqueueBounded(
    queue: string,
    requests: readonly EnqueueRequest[],
    maxPending: number,
  ): ReturnType<BoundedProducing['enqueueBounded']> {
    return this.reporting(queue, requests, this.producer.enqueueBounded(queue, requests, maxPending));
  }
}
