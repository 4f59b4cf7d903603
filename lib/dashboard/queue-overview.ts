import { mapConcurrent } from '../async.js';
import type { Broker } from '../broker/broker.js';
import { BrokerUnavailableError } from '../errors.js';
import { type QueueInfo, viewQueue } from '../inspector/views.js';
import type { ReplyCache } from './reply-cache.js';

/**
 * A queue that cannot be read: one of its keys has the wrong type, or its node of a cluster is
 * away.
 */
export interface UnreadableQueue {
  readonly queue: string;
  readonly error: Error;
}

export type QueueStatus = QueueInfo | UnreadableQueue;

/** Leaves Redis room for other work. */
const QUEUES_AT_ONCE = 8;

/** The state of all queues. A queue that cannot be read does not affect the others. */
export class QueueOverview {
  /**
   * Queues on a node that did not respond. They are read again in the background, so the others
   * need not wait for a timeout.
   */
  private readonly away = new Map<string, { readonly state: UnreadableQueue; asking: boolean }>();

  constructor(
    private readonly broker: Broker,
    private readonly cache: ReplyCache<unknown>,
  ) {}

  /** By name. @throws BrokerUnavailableError when none of them can be reached */
  all(): Promise<QueueStatus[]> {
    return this.cache.get('queues', async () => {
      const names = await this.broker.inspection.queues();
      for (const queue of this.away.keys()) if (!names.includes(queue)) this.away.delete(queue);
      const states = await mapConcurrent(names.sort(), QUEUES_AT_ONCE, (queue) => this.read(queue));
      if (states.length > 0 && states.every(isAway)) {
        this.away.clear(); // all of Redis is away: the next request must see at once when it is back
        throw states[0]!.error;
      }
      return states;
    });
  }

  /**
   * Takes the queue from the last read of all queues if that is fresh.
   *
   * @throws BrokerUnavailableError
   */
  async one(queue: string): Promise<QueueStatus> {
    const states = await this.cache.fresh<QueueStatus[]>('queues');
    const known = states?.find((state) => state.queue === queue);
    const state = known ?? (await this.cache.get(`queue ${queue}`, () => this.read(queue)));
    if (isAway(state)) throw state.error;
    return state;
  }

  private async read(queue: string): Promise<QueueStatus> {
    const known = this.away.get(queue);
    if (!known) return this.ask(queue);
    if (!known.asking) void this.ask(queue);
    known.asking = true;
    return known.state;
  }

  private async ask(queue: string): Promise<QueueStatus> {
    try {
      const numbers = await this.broker.inspection.describeQueue(queue);
      this.away.delete(queue);
      return viewQueue(queue, numbers, this.broker.clock.now());
    } catch (error) {
      const state = { queue, error: error as Error };
      if (isAway(state)) this.away.set(queue, { state, asking: false });
      else this.away.delete(queue);
      return state;
    }
  }
}

const isAway = (state: QueueStatus): state is UnreadableQueue =>
  'error' in state && state.error instanceof BrokerUnavailableError;
