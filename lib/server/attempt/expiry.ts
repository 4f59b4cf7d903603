import { toDate } from '../../clock.js';
import type { AsynqEvents } from '../../events/events.js';
import { type Expiry, expiryOf } from '../../wire/expiry.js';
import type { ActiveTask } from './active-task.js';

/**
 * The expiry of a task that has expired. Only the first attempt must begin in time: a task that has failed before, or is run by hand
 * after it expired, does not expire.
 */
export function passedExpiry({ message, startedAt }: ActiveTask): Expiry | undefined {
  const expiry = expiryOf(message.headers);
  return expiry && expiry.at < startedAt && message.retried === 0 && message.lastFailedAt === 0 ? expiry : undefined;
}

export function reportExpired(events: AsynqEvents, { id, type, queue }: ActiveTask, { at, policy }: Expiry): void {
  events.emit('taskExpired', { task: { id, type, queue }, expiredAt: toDate(at), onExpiry: policy });
}
