import type { EnqueueRequest, EnqueueStatus, ProducerRole } from '../../lib/broker/broker.js';
import type { LinksRole } from '../../lib/broker/links.js';
import type { ClientBroker } from '../../lib/client/client-options.js';
import { FairQueues } from '../../lib/broker/fair-queues.js';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../lib/clock.js';

/** One `enqueue` call as the broker saw it. */
export interface ProducerCall {
  readonly queue: string;
  readonly requests: readonly EnqueueRequest[];
}

/**
 * A broker that stores nothing: it records the calls, and replies, fails or waits as a test wants.
 */
export class FakeProducerBroker implements ClientBroker {
  readonly clock: ManualClock;
  readonly keyPrefix: string;
  readonly maxPayloadSize: number;
  readonly manual = false;
  readonly fairQueues = new FairQueues();
  readonly producer: ProducerRole = {
    enqueue: (queue, requests) => this.enqueue(queue, requests),
    enqueueBounded: (queue, requests) => this.enqueue(queue, requests),
    enqueueAcknowledged: async (queue, requests) => ({
      statuses: await this.enqueue(queue, requests),
      replicas: 1,
      disk: true,
      isEnough: true,
    }),
  };
  /** Tasks with links are recorded like all others. */
  readonly links = {
    enqueue: async (queue: string, requests: readonly EnqueueRequest[]) => ({
      statuses: await this.enqueue(queue, requests),
      parcels: [],
    }),
  } as Partial<LinksRole> as LinksRole;
  readonly checkpoints: ClientBroker['checkpoints'] = new MemoryBroker().checkpoints;
  readonly groups: ClientBroker['groups'] = { listDelayedGroups: () => Promise.resolve(undefined) };
  readonly inspection: ClientBroker['inspection'];
  readonly following: ClientBroker['following'];
  readonly notes: ClientBroker['notes'];
  readonly batches: ClientBroker['batches'];
  readonly workflows: ClientBroker['workflows'];
  readonly administration: ClientBroker['administration'];
  readonly cancellation: ClientBroker['cancellation'];
  readonly uniqueness: ClientBroker['uniqueness'];
  readonly calls: ProducerCall[] = [];
  /** Calls without a reply. */
  underWay = 0;
  mostUnderWay = 0;
  /** Decides the status of each request; may throw to fail the whole call. */
  statusOf: (request: EnqueueRequest, queue: string) => EnqueueStatus = () => 'enqueued';
  private readonly held: (() => void)[] = [];
  private holding = false;

  constructor({ now = 1_700_000_000_000, keyPrefix = 'asynq', maxPayloadSize = 5 * 1024 * 1024 } = {}) {
    this.clock = new ManualClock(now);
    this.keyPrefix = keyPrefix;
    this.maxPayloadSize = maxPayloadSize;
    const store = new MemoryBroker(this.clock);
    ({ links: this.links, batches: this.batches, workflows: this.workflows } = store);
    ({ inspection: this.inspection, following: this.following, notes: this.notes } = store);
    ({ administration: this.administration, cancellation: this.cancellation, uniqueness: this.uniqueness } = store);
  }

  /** The requests of all calls, in order. */
  get requests(): EnqueueRequest[] {
    return this.calls.flatMap((call) => call.requests);
  }

  /** From now on calls are recorded and get no reply. */
  hold(): void {
    this.holding = true;
  }

  /** Answers the oldest call that is held. */
  releaseOne(): void {
    this.held.shift()?.();
  }

  /** Answers every held call, and later ones at once. */
  release(): void {
    this.holding = false;
    for (const go of this.held.splice(0)) go();
  }

  private async enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]> {
    this.calls.push({ queue, requests });
    this.mostUnderWay = Math.max(this.mostUnderWay, ++this.underWay);
    try {
      if (this.holding) await new Promise<void>((go) => this.held.push(go));
      return requests.map((request) => this.statusOf(request, queue));
    } finally {
      this.underWay--;
    }
  }
}
