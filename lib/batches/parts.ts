import type { Broker } from '../broker/broker.js';
import type { Preparer } from '../enqueue/preparer.js';
import type { AsynqEvents } from '../events/events.js';
import type { BatchProgress } from '../broker/batches.js';
import type { EndPoller } from '../links/end-poller.js';
import type { Relay } from '../links/relay.js';
import type { Sources } from './sources.js';
import type { Tracing } from '../tracing/tracing.js';

/** What batches need of a client. */
export interface BatchParts {
  readonly broker: Pick<Broker, 'batches' | 'clock' | 'manual'>;
  readonly preparer: Preparer;
  readonly relay: Relay;
  readonly events?: AsynqEvents | undefined;
  readonly tracing?: Tracing | undefined;
  /** @throws ClosedError when the client is closed */
  requireOpen(): void;
  readonly poller: EndPoller<BatchProgress>;
  readonly sources: Sources;
  /** Keeps the client from closing before the work has settled. */
  track<T>(work: Promise<T>): Promise<T>;
}
