import type { Broker } from '../../broker/broker.js';
import type { ObservedServer } from '../../broker/obstacles.js';
import { toDate } from '../../clock.js';
import { newerWaitlist, payloadVersion } from '../../wire/payload-version.js';
import type { Case } from './case.js';
import { handlerOf, refOf } from './fleet.js';
import type { TaskReason } from './reasons.js';

/** Clocks that differ by less are taken as equal: what a server publishes says it within a second. */
const TOLERATED_CLOCK_MS = 2_500;
/** Of so many queues of a higher priority it is asked how many tasks they have. */
const MAX_QUEUES = 20;

/** What no task of this type gets past: its queue is paused or not served, or nobody there can run it. */
export function obstacles(known: Case): TaskReason[] {
  const { fleet, position } = known;
  const reasons: TaskReason[] = position.paused ? [{ kind: 'queuePaused' }] : [];
  if (fleet.serving.length > 0) return [...reasons, ...handling(known)];
  if (fleet.stopped.length > 0) return [...reasons, { kind: 'draining', servers: fleet.stopped.map(refOf) }];
  return [...reasons, { kind: 'notServed', servers: fleet.all }];
}

function handling(known: Case): TaskReason[] {
  const { message } = known.task;
  const { serving } = known.fleet;
  const unknown = serving.filter(({ profile }) => profile === undefined);
  const lacking = serving.filter((server) => server.profile && !handlerOf(server, message.type));
  const handlers = serving.flatMap((server) => handlerOf(server, message.type) ?? []);
  const reasons: TaskReason[] = [];
  if (lacking.length > 0) {
    reasons.push({ kind: 'noHandler', servers: lacking.map(refOf), others: serving.length - lacking.length });
  }
  const version = payloadVersion(message.headers);
  const newest = Math.max(0, ...handlers.map((handler) => handler.version ?? 1));
  if (handlers.length > 0 && version > newest) reasons.push(payloadTooNew(known, version, newest));
  if (handlers.length === 0 && unknown.length > 0) {
    reasons.push({ kind: 'handlersUnknown', servers: unknown.map(refOf) });
  }
  return reasons;
}

function payloadTooNew({ task, position }: Case, version: number, newest: number): TaskReason {
  const deferred = position.waitlist?.name === newerWaitlist(task.message.type);
  const retryAt = deferred && task.nextProcessAt !== undefined ? toDate(task.nextProcessAt * 1000) : undefined;
  return { kind: 'payloadTooNew', version, known: newest, deferred, retryAt };
}

/** What a pending task waits for behind others. @param inLine it is in the line of a key, where its place is another one */
export async function capacity(
  { inspection }: Pick<Broker, 'inspection'>,
  known: Case,
  inLine: boolean,
): Promise<TaskReason[]> {
  const { fleet, position, queue } = known;
  const reasons: TaskReason[] = [];
  const running = fleet.serving.reduce((sum, { workers }) => sum + workers.length, 0);
  const slots = fleet.serving.reduce((sum, { info }) => sum + info.concurrency, 0);
  if (fleet.serving.length > 0 && running >= slots) {
    reasons.push({ kind: 'serversFull', running, slots, servers: fleet.serving.length });
  }
  const first = await busyQueues(inspection, queuesBefore(fleet.serving, queue));
  if (first.length > 0) reasons.push({ kind: 'priority', queues: first });
  if (position.ahead !== 0 && !inLine) reasons.push({ kind: 'behind', ahead: position.ahead });
  return reasons;
}

/** The queues that every server of this queue takes tasks of before. */
function queuesBefore(serving: readonly ObservedServer[], queue: string): string[] {
  const higher = serving.map(({ info: { strictPriority, queues } }) =>
    Object.keys(queues).filter((other) => strictPriority && queues[other]! > queues[queue]!),
  );
  if (higher.some(({ length }) => length === 0)) return [];
  return [...new Set(higher.flat())].slice(0, MAX_QUEUES);
}

async function busyQueues(inspection: Broker['inspection'], queues: readonly string[]) {
  const found = await Promise.all(queues.map((queue) => inspection.describeQueue(queue)));
  return queues.flatMap((queue, index) => {
    const { pending, paused } = found[index]!;
    return pending > 0 && !paused ? [{ queue, pending }] : [];
  });
}

/** Servers whose clock says another time than Redis': what is due, and what has expired, is decided with it. */
export const wrongClocks = ({ fleet }: Case): TaskReason[] =>
  fleet.serving.flatMap((server): TaskReason[] => {
    const { clockAhead } = server;
    if (clockAhead === undefined || Math.abs(clockAhead) < TOLERATED_CLOCK_MS) return [];
    return [{ kind: 'clock', server: refOf(server), ahead: clockAhead }];
  });
