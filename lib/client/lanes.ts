import type { Broker, EnqueueRequest } from '../broker/broker.js';
import { Coalescer } from '../enqueue/coalescer.js';
import { LinkedProducer } from '../enqueue/linked-producer.js';
import type { PreparedTask } from '../enqueue/prepared-task.js';
import type { EnqueueReply, Producing } from '../enqueue/producing.js';
import { CALL_LIMITS, Requests } from '../enqueue/requests.js';
import type { AsynqEvents } from '../events/events.js';
import type { Relay } from '../links/relay.js';
import { NamingProducer, type RepeatBroker, RepeatProducer } from './repeat-producer.js';
import { ReportingProducer } from './reporting-producer.js';

/** Tasks with links, those with a policy for repeats, and all others: each go their own way, in batches of their own. */
export type Lane = 'plain' | 'linked' | 'repeats';

export type ByLane<T> = Readonly<Record<Lane, T>>;

export const LANES: readonly Lane[] = ['plain', 'linked', 'repeats'];

export function laneOf({ linked, repeats }: PreparedTask): Lane {
  if (linked !== undefined) return 'linked';
  return repeats === undefined ? 'plain' : 'repeats';
}

/** The producers of a client; they report calls that fail. */
export function producersOf(
  broker: RepeatBroker & Pick<Broker, 'producer' | 'links'>,
  relay: Relay,
  events: AsynqEvents | undefined,
): ByLane<Producing> {
  const reporting = (producer: Producing) => (events ? new ReportingProducer(producer, events) : producer);
  return {
    plain: reporting(new NamingProducer(broker.producer, broker.uniqueness)),
    linked: reporting(new NamingProducer(new LinkedProducer(broker.links, relay), broker.uniqueness)),
    repeats: reporting(new RepeatProducer(broker, relay)),
  };
}

export type EnqueueCoalescer = Coalescer<EnqueueRequest, EnqueueReply>;

/** Sends single enqueues that come close together. */
export const coalescerOf = (producer: Producing): EnqueueCoalescer =>
  new Coalescer(
    (queue, requests) => producer.enqueue(queue, requests),
    () => new Requests(CALL_LIMITS),
  );
