import type { Broker, EnqueueRequest } from '../broker/broker.js';
import type { Full } from '../broker/enqueue-request.js';
import type { RepeatBounds, RepeatReplies, RepeatReply, RepeatRequest } from '../broker/uniqueness.js';
import type { BoundedProducing, EnqueueReply } from '../enqueue/producing.js';
import type { Relay } from '../links/relay.js';

/** The part of a broker that takes tasks with a policy for repeats. */
export type RepeatBroker = Pick<Broker, 'uniqueness'>;

/** Enqueues tasks that have a policy for repeats. */
export class RepeatProducer implements BoundedProducing {
  constructor(
    private readonly broker: RepeatBroker,
    private readonly relay: Pick<Relay, 'carry'>,
  ) {}

  /** @param requests as `repeated` has made them */
  async enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<readonly RepeatReply[]> {
    return (await this.send(queue, requests)).replies as readonly RepeatReply[];
  }

  async enqueueBounded(
    queue: string,
    requests: readonly EnqueueRequest[],
    maxPending: number,
  ): Promise<readonly (RepeatReply | Full)[]> {
    return (await this.send(queue, requests, { maxPending })).replies;
  }

  /** With `acknowledge` the reply says who has the tasks, too. */
  async send(queue: string, requests: readonly EnqueueRequest[], bounds?: RepeatBounds): Promise<RepeatReplies> {
    const reply = await this.broker.uniqueness.enqueue(queue, requests as readonly RepeatRequest[], bounds);
    this.relay.carry(reply);
    return reply;
  }
}

const DUPLICATE = 'duplicate';

/** Finds the tasks that keep others out, for their errors. */
export class NamingProducer implements BoundedProducing {
  constructor(
    private readonly producer: BoundedProducing,
    private readonly uniqueness: Pick<Broker['uniqueness'], 'describe'>,
  ) {}

  enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<readonly EnqueueReply[]> {
    return this.named(queue, requests, this.producer.enqueue(queue, requests));
  }

  enqueueBounded(
    queue: string,
    requests: readonly EnqueueRequest[],
    maxPending: number,
  ): Promise<readonly (EnqueueReply | Full)[]> {
    return this.named(queue, requests, this.producer.enqueueBounded(queue, requests, maxPending));
  }

  /** Nothing keeps out tasks without a lock. */
  private named<Reply>(
    queue: string,
    requests: readonly EnqueueRequest[],
    call: Promise<readonly Reply[]>,
  ): Promise<readonly (Reply | RepeatReply)[]> {
    if (!requests.some(({ uniqueTtl }) => uniqueTtl !== undefined)) return call;
    return call.then((replies) =>
      replies.includes(DUPLICATE as Reply) ? this.name(queue, requests, replies) : replies,
    );
  }

  private async name<Reply>(
    queue: string,
    requests: readonly EnqueueRequest[],
    replies: readonly Reply[],
  ): Promise<readonly (Reply | RepeatReply)[]> {
    const refused = requests.filter((_, index) => replies[index] === DUPLICATE);
    const locks = [...new Set(refused.map(({ message }) => message.uniqueKey))];
    // The task is refused, whether or not the other can be named.
    const found = await this.uniqueness.describe(queue, locks).catch(() => []);
    const owners = new Map(found.map(({ lock, owner }) => [lock, owner]));
    return replies.map((reply, index): Reply | RepeatReply => {
      const owner = reply === DUPLICATE && owners.get(requests[index]!.message.uniqueKey);
      return owner ? { status: DUPLICATE, owner } : reply;
    });
  }
}
