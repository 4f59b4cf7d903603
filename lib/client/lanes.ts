import type { Broker, EnqueueRequest } from '../broker/broker.js';
import { Coalescer } from '../enqueue/coalescer.js';
import { LinkedProducer } from '../enqueue/linked-producer.js';
import type { PreparedTask } from '../enqueue/prepared-task.js';
import type { EnqueueReply, Producing } from '../enqueue/producing.js';
import { CALL_LIMITS, Requests } from '../enqueue/requests.js';
import type { AsynqEvents } from '../events/events.js';
import type { Relay } from '../links/relay.js';
import { ReportingProducer } from './reporting-producer.js';

/** Tasks without links, or those with links: each go their own way, in batches of their own. */
export type Lane = 'plain' | 'linked';

export type ByLane<T> = Readonly<Record<Lane, T>>;

export const LANES: readonly Lane[] = ['plain', 'linked'];

export const laneOf = (task: PreparedTask): Lane => (task.linked === undefined ? 'plain' : 'linked');

/** The producers of a client; they report calls that fail. */
export function producersOf(
  { producer, links }: Pick<Broker, 'producer' | 'links'>,
  relay: Relay,
  events: AsynqEvents | undefined,
): ByLane<Producing> {
  const linked = new LinkedProducer(links, relay);
  if (!events) return { plain: producer, linked };
  return { plain: new ReportingProducer(producer, events), linked: new ReportingProducer(linked, events) };
}

export type EnqueueCoalescer = Coalescer<EnqueueRequest, EnqueueReply>;

/** Sends single enqueues that come close together. */
export const coalescerOf = (producer: Producing): EnqueueCoalescer =>
  new Coalescer(
    (queue, requests) => producer.enqueue(queue, requests),
    () => new Requests(CALL_LIMITS),
  );
