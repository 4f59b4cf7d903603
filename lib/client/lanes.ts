import type { Broker, EnqueueRequest } from '../broker/broker.js';
import type { Clock } from '../clock.js';
import { Coalescer } from '../enqueue/coalescer.js';
import type { Flight } from '../enqueue/flight.js';
import { LinkedProducer } from '../enqueue/linked-producer.js';
import type { PreparedTask } from '../enqueue/prepared-task.js';
import type { BoundedProducing, EnqueueReply, Producing } from '../enqueue/producing.js';
import { CALL_LIMITS, Requests, SINGLES_LIMITS } from '../enqueue/requests.js';
import type { AsynqEvents } from '../events/events.js';
import type { Relay } from '../links/relay.js';
import type { ReadRoom } from '../task/queue-settings.js';
import { AcknowledgedProducer } from './acknowledged-producer.js';
import { BoundedProducer } from './bounded-producer.js';
import { NamingProducer, type RepeatBroker, RepeatProducer } from './repeat-producer.js';
import { ReportingProducer } from './reporting-producer.js';

/** Tasks with links, those with a policy for repeats, those whose callers wait for replicas or files, and all others: each go their own way, in batches of their own. */
export type Lane = 'plain' | 'linked' | 'repeats' | 'acknowledged';

export type ByLane<T> = Readonly<Record<Lane, T>>;

export const LANES: readonly Lane[] = ['plain', 'linked', 'repeats', 'acknowledged'];

export function laneOf({ linked, repeats, acknowledge }: PreparedTask): Lane {
  if (linked !== undefined) return 'linked';
  if (acknowledge !== undefined) return 'acknowledged';
  return repeats === undefined ? 'plain' : 'repeats';
}

type Producers = ByLane<BoundedProducing>;

/** The producers of a client; they report calls that fail. */
export function producersOf(
  broker: RepeatBroker & Pick<Broker, 'producer' | 'links'>,
  relay: Relay,
  events: AsynqEvents | undefined,
): Producers {
  const reporting = (producer: BoundedProducing): BoundedProducing =>
    events ? new ReportingProducer(producer, events) : producer;
  const repeats = new RepeatProducer(broker, relay);
  return {
    plain: reporting(new NamingProducer(broker.producer, broker.uniqueness)),
    linked: reporting(new NamingProducer(new LinkedProducer(broker.links, relay), broker.uniqueness)),
    acknowledged: reporting(new NamingProducer(new AcknowledgedProducer(broker.producer, repeats), broker.uniqueness)),
    repeats: reporting(repeats),
  };
}

/** They fill some queues only so far. */
export class BoundedProducers implements ByLane<Producing> {
  readonly plain: BoundedProducer;
  readonly linked: BoundedProducer;
  readonly acknowledged: BoundedProducer;
  readonly repeats: BoundedProducer;

  /** @param rooms of these queues */
  constructor({ plain, linked, acknowledged, repeats }: Producers, rooms: ReadonlyMap<string, ReadRoom>, clock: Clock) {
    this.plain = new BoundedProducer(plain, rooms, clock);
    this.linked = new BoundedProducer(linked, rooms, clock);
    this.acknowledged = new BoundedProducer(acknowledged, rooms, clock);
    this.repeats = new BoundedProducer(repeats, rooms, clock);
  }

  /** Those who wait for room are refused after a last try. */
  async close(): Promise<void> {
    await Promise.all([this.plain, this.linked, this.acknowledged, this.repeats].map((one) => one.close()));
  }
}

/** @param flight bounds what is under way in all of them */
export const coalescersOf = (
  { plain, linked, repeats, acknowledged }: ByLane<Producing>,
  flight: Flight,
): ByLane<EnqueueCoalescer> => ({
  plain: coalescerOf(plain, flight),
  linked: coalescerOf(linked, flight),
  repeats: coalescerOf(repeats, flight),
  // Its connection does nothing else while it waits: what comes meanwhile shares the next call.
  acknowledged: coalescerOf(acknowledged, flight, true),
});

export type EnqueueCoalescer = Coalescer<EnqueueRequest, EnqueueReply>;

/** Sends single enqueues that come close together. */
const coalescerOf = (producer: Producing, flight: Flight, oneAtATime = false): EnqueueCoalescer =>
  new Coalescer(
    (queue, requests) => producer.enqueue(queue, requests),
    () => new Requests(oneAtATime ? CALL_LIMITS : SINGLES_LIMITS),
    oneAtATime,
    flight,
  );
