import { RECOVERY_GRACE_SECONDS } from '../../broker/broker.js';
import { toDate } from '../../clock.js';
import { crashesOf, TASK_CRASHED } from '../../wire/crashes.js';
import { expiryOf, TASK_EXPIRED } from '../../wire/expiry.js';
import { namesLast } from '../../wire/keys.js';
import type { Case } from './case.js';
import type { WaitedFor } from '../waits.js';
import { fleetOf, refOf } from './fleet.js';
import type { TaskReason } from './reasons.js';

const at = (seconds: number): Date => toDate(seconds * 1000);
const atOrNever = (seconds: number): Date | undefined => (seconds === 0 ? undefined : at(seconds));

/** The task is too late to run: it has not begun in time, or its deadline has passed. */
export function tooLate({ task: { message }, now }: Case): TaskReason[] {
  const expiry = expiryOf(message.headers);
  const isNew = message.retried === 0 && message.lastFailedAt === 0;
  if (expiry && expiry.at < now && isNew) {
    return [{ kind: 'tooLate', at: toDate(expiry.at), limit: 'expiry', outcome: expiry.policy }];
  }
  const { deadline } = message;
  if (deadline === 0 || deadline * 1000 > now) return [];
  return [{ kind: 'tooLate', at: at(deadline), limit: 'deadline', outcome: 'archive' }];
}

/** What the state of a task says: it runs, it is over, or it waits for a time, for tasks or in a group. */
export function stateReason(known: Case): TaskReason | undefined {
  const { task } = known;
  switch (task.state) {
    case 'active':
      return active(known);
    case 'completed':
      return { kind: 'completed', at: atOrNever(task.message.completedAt) };
    case 'archived':
      return archived(known);
    case 'scheduled':
      return delayed(known, (when) => suspendedOrScheduled(known, when));
    case 'retry':
      return delayed(known, (when) => retry(known, when));
    case 'aggregating':
      return aggregating(known);
    case 'waiting':
      return waiting(known);
    case 'pending':
    case 'held':
      return undefined;
  }
}

function active({ queue, id, position, servers, now }: Case): TaskReason {
  const { leaseEnd } = position;
  if (leaseEnd === undefined || leaseEnd * 1000 < now) {
    const recoverableAt = leaseEnd === undefined ? toDate(now) : at(leaseEnd + RECOVERY_GRACE_SECONDS);
    return { kind: 'leaseExpired', leaseUntil: leaseEnd === undefined ? undefined : at(leaseEnd), recoverableAt };
  }
  for (const server of servers) {
    const worker = server.workers.find((one) => one.taskId === id && one.queue === queue);
    if (!worker) continue;
    const times = { since: toDate(worker.startTime), deadline: toDate(worker.deadline), leaseUntil: at(leaseEnd) };
    return { kind: 'running', server: refOf(server), ...times };
  }
  return { kind: 'running', server: undefined, since: undefined, deadline: undefined, leaseUntil: at(leaseEnd) };
}

function archived({ task: { message }, wait }: Case): TaskReason {
  const { errorMsg: error, retried, maxRetry } = message;
  const failedAt = atOrNever(message.lastFailedAt);
  const facts = { error, failedAt, retried, maxRetry };
  if (wait?.cancelled) return { kind: 'archived', cause: 'prerequisite', ...facts };
  if (hasExpired(message)) return { kind: 'archived', cause: 'expiry', ...facts };
  if (hasCrashed(message)) return { kind: 'archived', cause: 'crashes', ...facts };
  if (error === '') return { kind: 'archived', cause: 'action', ...facts };
  return { kind: 'archived', cause: retried >= maxRetry ? 'retries' : 'failure', ...facts };
}

/** The error alone says nothing: a handler may quote one. */
const hasExpired = ({ headers, errorMsg, retried }: Case['task']['message']): boolean =>
  expiryOf(headers) !== undefined && retried === 0 && errorMsg.startsWith(TASK_EXPIRED);

const hasCrashed = ({ headers, errorMsg }: Case['task']['message']): boolean =>
  crashesOf(headers) !== undefined && errorMsg.startsWith(TASK_CRASHED);

function delayed({ task, now }: Case, reason: (at: Date) => TaskReason): TaskReason {
  const when = toDate((task.nextProcessAt ?? 0) * 1000);
  return when.getTime() <= now ? { kind: 'due', at: when } : reason(when);
}

function suspendedOrScheduled({ steps }: Case, when: Date): TaskReason {
  if (steps.length === 0) return { kind: 'scheduled', at: when };
  const suspended = steps.map(({ name, state, wakeAt, signal, child }) => ({ name, state, wakeAt, signal, child }));
  return { kind: 'suspended', at: when, steps: suspended };
}

function retry({ task: { message } }: Case, when: Date): TaskReason {
  const { retried, maxRetry, errorMsg: error } = message;
  return { kind: 'retry', at: when, retried, maxRetry, error, failedAt: atOrNever(message.lastFailedAt) };
}

function aggregating({ task, fleet: { serving } }: Case): TaskReason {
  const isKnown = serving.every(({ profile }) => profile !== undefined);
  const some = serving.some(({ profile }) => profile?.aggregates);
  return { kind: 'aggregating', group: task.message.groupKey, aggregated: some || (isKnown ? false : undefined) };
}

function waiting({ wait, task, servers }: Case): TaskReason {
  const all = wait?.prerequisites ?? [];
  const isUnserved = ({ prerequisite, state }: WaitedFor): boolean =>
    state === 'waiting' && 'id' in prerequisite && fleetOf(servers, prerequisite.queue).serving.length === 0;
  const open = all.filter(({ state }) => state !== 'succeeded').map((one) => ({ ...one, unserved: isUnserved(one) }));
  const until = task.nextProcessAt === undefined ? undefined : at(task.nextProcessAt);
  return { kind: 'waiting', open, prerequisites: all.length, follows: namesLast(task.message), until };
}
