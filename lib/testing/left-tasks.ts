import type { StoredTask } from '../broker/inspection.js';
import type { Server } from '../server/index.js';
import { isNewerWaitlist } from '../wire/payload-version.js';
import type { InMemoryBroker } from './in-memory-broker.js';
import type { LeftReason, LeftTasks } from './run-summary.js';
import { whatFor, whyLeft } from './testing.messages.js';

/** The tasks that could run now, by queue, type and the reason why they do not. */
export function leftTasks(broker: InMemoryBroker, server: Server): LeftTasks[] {
  const left = new Map<string, LeftTasks>();
  for (const task of broker.tasks()) {
    const { queue, type, id } = task.message;
    const waitlist = task.held?.waitlist;
    const reason = reasonOf(task, waitlist, broker, server);
    if (!reason) continue;
    const why = reason === 'waiting' ? whatFor(broker.waitOf(queue, id)!) : whyLeft(reason, task.message, waitlist);
    const key = JSON.stringify([queue, type, why]);
    left.set(key, { queue, type, count: (left.get(key)?.count ?? 0) + 1, reason, why });
  }
  return [...left.values()];
}

function reasonOf(
  { message, state, nextProcessAt = Infinity }: StoredTask,
  waitlist: string | undefined,
  broker: InMemoryBroker,
  server: Server,
): LeftReason | undefined {
  const { queue, groupKey } = message;
  if (state === 'waiting') return 'waiting';
  if (waitlist !== undefined) return isNewerWaitlist(waitlist) ? 'newerPayload' : 'limited';
  const isDue = state === 'pending' || (DELAYED.has(state) && nextProcessAt * 1000 <= broker.clock.now());
  if (!isDue && state !== 'aggregating') return undefined;
  if (!server.queues.includes(queue)) return 'notServed';
  if (state === 'aggregating') return server.byHand.aggregates(groupKey) ? undefined : 'noAggregator';
  return broker.store(queue).pausedAt === undefined ? 'limited' : 'paused';
}

const DELAYED: ReadonlySet<string> = new Set(['scheduled', 'retry']);
