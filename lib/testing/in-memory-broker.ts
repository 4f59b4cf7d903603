import type { EnqueueRequest, EnqueueStatus } from '../broker/broker.js';
import type { StoredTask } from '../broker/inspection.js';
import type { Firing, FiringReply } from '../broker/scheduling.js';
import type { AggregationSet, FinishStatus } from '../broker/aggregation.js';
import { MemoryBroker } from '../broker/memory/memory-broker.js';
import { floorSeconds, ManualClock, SystemClock } from '../clock.js';

/**
 * The broker for tests: everything in this process, and a clock that stands still until the test moves it. No server is started on
 * it; tasks run when an AsynqTester says so.
 *
 * @example
 * Test.createTestingModule({ imports: [AppModule] }).overrideProvider(ASYNQ_BROKER).useClass(InMemoryBroker)
 */
export class InMemoryBroker extends MemoryBroker {
  declare readonly clock: ManualClock;
  /** The how-manieth a task was, among those of all queues. */
  private readonly arrivals = new Map<string, number>();
  private arrived = 0;

  constructor() {
    // A whole second, the smallest step of asynq's times: what is to start in 10 minutes starts after 10 minutes, not after 601 s.
    super(new ManualClock(floorSeconds(new SystemClock().now()) * 1000), { manual: true });
  }

  override async enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]> {
    const statuses = await super.enqueue(queue, requests);
    requests.forEach(({ message }, index) => {
      if (statuses[index] === 'enqueued') this.arrivals.set(arrivalKey(message), ++this.arrived);
    });
    return statuses;
  }

  override async fire(queue: string, firing: Firing): Promise<FiringReply> {
    const reply = await super.fire(queue, firing);
    if (reply.status === 'enqueued') this.arrivals.set(arrivalKey(firing.request.message), ++this.arrived);
    return reply;
  }

  override async finishSet(set: AggregationSet, request: EnqueueRequest | undefined): Promise<FinishStatus> {
    const status = await super.finishSet(set, request);
    if (request && status === 'finished') this.arrivals.set(arrivalKey(request.message), ++this.arrived);
    return status;
  }

  /** Every task of the queue, or of all queues, in the order in which they were enqueued. */
  override tasks(queue?: string): StoredTask[] {
    const arrival = ({ message }: StoredTask): number => this.arrivals.get(arrivalKey(message)) ?? 0;
    return super.tasks(queue).sort((a, b) => arrival(a) - arrival(b));
  }

  override clear(): void {
    super.clear();
    this.arrivals.clear();
  }
}

const arrivalKey = ({ queue, id }: StoredTask['message']): string => `${queue}\n${id}`;
