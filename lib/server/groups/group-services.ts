import type { Broker } from '../../broker/broker.js';
import type { Clock } from '../../clock.js';
import type { AsynqEvents } from '../../events/events.js';
import type { Relay } from '../../links/relay.js';
import type { Tracing } from '../../tracing/tracing.js';
import type { Aggregators } from './aggregators.js';
import type { ResolvedGroupOptions } from './group-options.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';

/** What all that works on the groups of a server shares. */
export interface GroupServices {
  readonly broker: Pick<Broker, 'groups'>;
  readonly relay: Pick<Relay, 'carry'>;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly tracing: Tracing | undefined;
  readonly queues: QueueRegistry;
  readonly aggregators: Aggregators;
  readonly groups: ResolvedGroupOptions;
}
