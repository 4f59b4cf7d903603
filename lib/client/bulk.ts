import type { EnqueueStatus, ProducerRole } from '../broker/broker.js';
import { Requests, type CallLimits } from '../enqueue/requests.js';
import type { EnqueueResult } from '../enqueue/enqueue-result.js';
import type { PreparedTask } from '../enqueue/prepared-task.js';

/** Enough to keep Redis busy while the next batch is prepared. */
const MAX_CALLS_IN_FLIGHT = 4;

/** A task, and its position among the results. */
interface Item {
  readonly index: number;
  readonly task: PreparedTask;
}

/** The part of the client that a bulk calls. */
interface BulkCalls {
  /** Prepares task `index`; an error thrown is that task's result. */
  prepare(index: number): PreparedTask;
  /** Called right before a batch is sent to a queue. */
  beforeSend(queue: string): void;
  /** Reports a task the broker has replied about. */
  resultOf(task: PreparedTask, status: EnqueueStatus): EnqueueResult;
}

/**
 * One `enqueueMany`: prepares tasks as they are needed, collects them by queue, and sends them in
 * batches. The batches of a queue are sent in order; an error affects only the tasks it is about.
 */
export class Bulk {
  private readonly open = new Map<string, Requests<Item>>();
  /** The calls under way, oldest first. None rejects. */
  private readonly sending: Promise<void>[] = [];
  private readonly results: EnqueueResult[];

  constructor(
    private readonly broker: ProducerRole,
    private readonly limits: CallLimits,
    private readonly count: number,
    private readonly calls: BulkCalls,
  ) {
    this.results = Array.from({ length: count });
  }

  /** One result per task, in order. Never rejects. */
  async run(): Promise<EnqueueResult[]> {
    for (let index = 0; index < this.count; index++) {
      const task = this.tryPrepare(index);
      if (!task) continue;
      const { queue } = task.request.message;
      const batch = this.open.get(queue);
      if (batch && !batch.hasRoomFor(task.request)) await this.send(queue);
      this.add(queue, { index, task });
    }
    for (const queue of Array.from(this.open.keys())) await this.send(queue);
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

  private add(queue: string, item: Item): void {
    let batch = this.open.get(queue);
    if (!batch) this.open.set(queue, (batch = new Requests(this.limits)));
    batch.add(item.task.request, item);
  }

  /** Resolves when the call is under way, not when its reply comes. */
  private async send(queue: string): Promise<void> {
    const batch = this.open.get(queue)!;
    this.open.delete(queue);
    if (this.sending.length >= MAX_CALLS_IN_FLIGHT) await this.sending.shift();
    this.calls.beforeSend(queue);
    this.sending.push(this.call(queue, batch));
  }

  private async call(queue: string, { requests, owners }: Requests<Item>): Promise<void> {
    try {
      const statuses = await this.broker.enqueue(queue, requests);
      for (let at = 0; at < owners.length; at++) {
        const { index, task } = owners[at]!;
        this.results[index] = this.calls.resultOf(task, statuses[at]!);
      }
    } catch (error) {
      for (const { index } of owners) this.results[index] = { ok: false, error: error as Error };
    }
  }
}
