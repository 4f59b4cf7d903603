import type { Broker } from '../broker/broker.js';
import type { Relay } from '../links/relay.js';
import type { ResultsBroker } from '../results/results.js';
import type { Acknowledged } from '../task/acknowledge.js';
import type { PayloadCodec } from '../task/codec.js';
import type { TaskOptions } from '../task/options.js';
import type { QueueSettings } from '../task/queue-settings.js';
import type { WorkflowsBroker } from '../workflows/workflows.js';
import type { SenderBroker, SenderHooks } from './sender.js';

/** The part of a broker that a client uses. */
export interface ClientBroker
  extends
    SenderBroker,
    ResultsBroker,
    Pick<Broker, 'batches' | 'checkpoints' | 'notes' | 'fairQueues' | 'keyPrefix' | 'maxPayloadSize'>,
    WorkflowsBroker {}

export interface AsynqClientOptions extends Acknowledged {
  /** Encodes payloads, unless the definition has a codec. Default: JSON; bytes stay as they are. */
  codec?: PayloadCodec;
  /** Options for every task; those of its definition and of the call override them. */
  defaults?: TaskOptions;
  /** Settings of queues by name: how far this client fills them (`maxPending`), whether their tasks take turns (`fairness`). Default: none. */
  queues?: Readonly<Record<string, QueueSettings>>;
}

/** Where enqueued tasks are reported. */
export interface ClientHooks extends SenderHooks {
  /** Called with the queue of a task that is prepared, at least with each new one. Default: nobody is told. */
  readonly onQueue?: ((queue: string) => void) | undefined;
  /** Carries the parcels that linked tasks cause. Default: one of its own. */
  readonly relay?: Relay | undefined;
}
