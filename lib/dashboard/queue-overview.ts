import type { Broker } from '../broker/broker.js';
import { type QueueInfo, viewQueue } from '../inspector/views.js';
import { eachOf } from './each.js';
import type { ReplyCache } from './reply-cache.js';

/** A queue that cannot be read, for example since a key of it holds something else. */
export interface UnreadableQueue {
  readonly queue: string;
  readonly error: Error;
}

export type QueueState = QueueInfo | UnreadableQueue;

/** Redis has other things to do, too. */
const QUEUES_AT_ONCE = 8;

/** How all queues stand: one bad queue is one bad row. */
export class QueueOverview {
  constructor(
    private readonly broker: Broker,
    private readonly cache: ReplyCache,
  ) {}

  /** By name. */
  all(): Promise<QueueState[]> {
    return this.cache.get('queues', async () => {
      const names = await this.broker.queues();
      return eachOf(names.sort(), QUEUES_AT_ONCE, (queue) => this.read(queue));
    });
  }

  /** Out of what is known of all of them already, when that is fresh. */
  async one(queue: string): Promise<QueueState> {
    const states = await this.cache.fresh<QueueState[]>('queues');
    const known = states?.find((state) => state.queue === queue);
    return known ?? this.cache.get(`queue ${queue}`, () => this.read(queue));
  }

  private async read(queue: string): Promise<QueueState> {
    try {
      return viewQueue(queue, await this.broker.describeQueue(queue), this.broker.clock.now());
    } catch (error) {
      if ((error as { code?: unknown }).code === 'ASYNQ_BROKER_UNAVAILABLE') throw error;
      return { queue, error: error as Error };
    }
  }
}
