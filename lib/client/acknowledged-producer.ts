import type { EnqueueRequest } from '../broker/broker.js';
import type { Full } from '../broker/enqueue-request.js';
import type { RepeatRequest } from '../broker/uniqueness.js';
import type { ProducerRole } from '../broker/producer.js';
import type { AcknowledgedRequest } from '../enqueue/acknowledging.js';
import { type BoundedProducing, type EnqueueReply, Unacknowledged } from '../enqueue/producing.js';
import type { Acknowledge } from '../task/acknowledge.js';
import type { RepeatProducer } from './repeat-producer.js';

/** Enqueues tasks, and waits until replicas or files have them: once for all of a call that want the same. */
export class AcknowledgedProducer implements BoundedProducing {
  constructor(
    private readonly producer: Pick<ProducerRole, 'enqueueAcknowledged'>,
    private readonly repeats: Pick<RepeatProducer, 'send'>,
  ) {}

  /** @param requests as `acknowledging` has made them */
  enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<readonly EnqueueReply[]> {
    return this.send(queue, requests as readonly AcknowledgedRequest[]) as Promise<EnqueueReply[]>;
  }

  enqueueBounded(
    queue: string,
    requests: readonly EnqueueRequest[],
    maxPending: number,
  ): Promise<readonly (EnqueueReply | Full)[]> {
    return this.send(queue, requests as readonly AcknowledgedRequest[], maxPending);
  }

  private async send(queue: string, requests: readonly AcknowledgedRequest[], maxPending?: number) {
    const replies = new Array<EnqueueReply | Full>(requests.length);
    const calls = Array.from(byWish(requests).values(), async ({ acknowledge, repeats, indexes }) => {
      const some = indexes.map((index) => requests[index]!);
      if (repeats) {
        const reply = await this.repeats.send(queue, some, { acknowledge, maxPending });
        const { isEnough, ...copies } = reply.copies!;
        reply.replies.forEach((one, at) => {
          const missed = 'status' in one && !REFUSED.has(one.status) && !isEnough;
          replies[indexes[at]!] = missed ? new Unacknowledged(acknowledge, copies, one) : one;
        });
        return;
      }
      const { statuses, isEnough, ...copies } = await this.producer.enqueueAcknowledged(
        queue,
        some,
        acknowledge,
        maxPending,
      );
      statuses.forEach((status, at) => {
        const missed = status === 'enqueued' && !isEnough;
        replies[indexes[at]!] = missed ? new Unacknowledged(acknowledge, copies) : status;
      });
    });
    await Promise.all(calls);
    return replies;
  }
}

/** Nothing was made, and nothing found. */
const REFUSED: ReadonlySet<string> = new Set(['duplicate', 'conflict']);

interface Wish {
  readonly acknowledge: Acknowledge;
  /** They have policies for repeats. */
  readonly repeats: boolean;
  readonly indexes: number[];
}

function byWish(requests: readonly AcknowledgedRequest[]): Map<string, Wish> {
  const wishes = new Map<string, Wish>();
  requests.forEach(({ acknowledge, repeat }: AcknowledgedRequest & Partial<RepeatRequest>, index) => {
    const repeats = repeat !== undefined;
    const { replicas, disk, timeout } = acknowledge;
    const name = `${repeats} ${replicas} ${disk} ${timeout}`;
    const known = wishes.get(name);
    if (known) known.indexes.push(index);
    else wishes.set(name, { acknowledge, repeats, indexes: [index] });
  });
  return wishes;
}
