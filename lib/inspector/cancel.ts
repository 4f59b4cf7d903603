import type { Broker } from '../broker/broker.js';
import { type CancelOptions, toCancellation } from './cancel-options.js';

/** Asks the servers that run a task of this id to cancel it. @throws InvalidOptionError */
export async function cancel(
  { cancellation, clock }: Pick<Broker, 'cancellation' | 'clock'>,
  id: string,
  options: CancelOptions,
): Promise<void> {
  const wanted = toCancellation(id, options, clock.now());
  await cancellation.recordCancellation(wanted); // first: a server that receives the message reads it
  await cancellation.publishCancellation(id);
}
