import { Requests, type CallLimits } from '../enqueue/requests.js';
import { type ByLane, type Lane, laneOf, LANES } from './lanes.js';
import type { EnqueueOutcome } from '../enqueue/enqueue-result.js';
import type { EnqueueReply, Producing } from '../enqueue/producing.js';
import type { Flight } from '../enqueue/flight.js';
import type { PreparedTask } from '../enqueue/prepared-task.js';

/** Enough to keep Redis busy while the next batch is prepared. */
const MAX_CALLS_IN_FLIGHT = 4;

/** A task, and its position among the results. */
interface Item {
  readonly index: number;
  readonly task: PreparedTask;
}

type OpenBatches = Map<string, Requests<Item>>;

/** The part of the client that a bulk calls. */
interface BulkCalls {
  /** Prepares task `index`; an error thrown is that task's result. */
  prepare(index: number): PreparedTask;
  /** Called right before a batch is sent to a queue. */
  beforeSend(lane: Lane, queue: string): void;
  /** Reports a task the broker has replied about. */
  resultOf(task: PreparedTask, status: EnqueueReply): EnqueueOutcome;
}

/**
 * One `enqueueMany`: prepares tasks as they are needed, collects them by queue, and sends them in
 * batches. The batches of a queue are sent in order; an error affects only the tasks it is about.
 */
export class Bulk {
  /** By queue. */
  private readonly open: ByLane<OpenBatches> = {
    plain: new Map(),
    linked: new Map(),
    repeats: new Map(),
    acknowledged: new Map(),
  };
  /** The calls under way, oldest first. None rejects. */
  private readonly sending: Promise<void>[] = [];
  private readonly results: EnqueueOutcome[];

  constructor(
    private readonly producers: ByLane<Producing>,
    private readonly limits: CallLimits,
    private readonly count: number,
    private readonly calls: BulkCalls,
    private readonly flight: Flight,
  ) {
    this.results = Array.from({ length: count });
  }

  /** One result per task, in order. Never rejects. */
  async run(): Promise<EnqueueOutcome[]> {
    for (let index = 0; index < this.count; index++) {
      const task = this.tryPrepare(index);
      if (!task) continue;
      const { queue } = task.request.message;
      const lane = laneOf(task);
      const batch = this.open[lane].get(queue);
      if (batch && !batch.hasRoomFor(task.request)) await this.send(lane, queue);
      this.add(this.open[lane], queue, { index, task });
    }
    for (const lane of LANES) {
      for (const queue of Array.from(this.open[lane].keys())) await this.send(lane, queue);
    }
    await Promise.all(this.sending);
    return this.results;
  }

  private tryPrepare(index: number): PreparedTask | undefined {
    try {
      return this.calls.prepare(index);
    } catch (error) {
      this.results[index] = { ok: false, error: error as Error };
      return undefined;
    }
  }

  private add(open: OpenBatches, queue: string, item: Item): void {
    let batch = open.get(queue);
    if (!batch) open.set(queue, (batch = new Requests(this.limits)));
    batch.add(item.task.request, item);
  }

  /** Resolves when the call is under way, not when its reply comes. */
  private async send(lane: Lane, queue: string): Promise<void> {
    const batch = this.open[lane].get(queue)!;
    this.open[lane].delete(queue);
    if (this.sending.length >= MAX_CALLS_IN_FLIGHT) await this.sending.shift();
    this.calls.beforeSend(lane, queue);
    this.sending.push(this.call(this.producers[lane], queue, batch));
  }

  private async call(producer: Producing, queue: string, { requests, owners, bytes }: Requests<Item>): Promise<void> {
    let inside = false;
    try {
      const turn = this.flight.enter(bytes);
      if (turn) await turn;
      inside = true;
      const statuses = await producer.enqueue(queue, requests);
      this.flight.leave(bytes);
      inside = false;
      for (let at = 0; at < owners.length; at++) {
        const { index, task } = owners[at]!;
        const status = statuses[at]!;
        this.results[index] = this.calls.resultOf(task, status instanceof Promise ? await status : status);
      }
    } catch (error) {
      if (inside) this.flight.leave(bytes, error);
      for (const { index } of owners) this.results[index] = { ok: false, error: error as Error };
    }
  }
}
