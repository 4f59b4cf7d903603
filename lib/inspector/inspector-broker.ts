import type { Broker } from '../broker/broker.js';

/** What an inspector needs of a broker. */
export type InspectorBroker = Pick<
  Broker,
  | 'inspection'
  | 'listing'
  | 'administration'
  | 'publications'
  | 'scheduling'
  | 'cancellation'
  | 'operations'
  | 'clock'
  | 'maxPayloadSize'
  | 'links'
  | 'batches'
  | 'workflows'
  | 'obstacles'
  | 'checkpoints'
  | 'fairKeys'
  | 'uniqueness'
  | 'keyPrefix'
>;
