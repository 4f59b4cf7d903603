import { formatDuration, formatMoment } from '../../words/when.js';
import { keyLimitText, turnText } from './key-words.js';
import { limitText } from './limit-words.js';
import type { ExplainedReason, OpenPrerequisite, ServerRef, SuspendedStep, TaskReason } from './reasons.js';

/** Names of more servers, queues or tasks than this are left out. */
const MAX_NAMES = 5;

/** @param now milliseconds since the epoch */
export const explainedReason = (reason: TaskReason, now: number): ExplainedReason => ({
  ...reason,
  text: reasonText(reason, now),
});

/** The reason in words, made of its data alone. @param now milliseconds since the epoch */
export function reasonText(reason: TaskReason, now: number): string {
  const moment = (time: Date | undefined): string => formatMoment(time, now);
  switch (reason.kind) {
    case 'missing':
      return missingText(reason);
    case 'damaged':
      return `Its message cannot be decoded, so that no server can run it: ${reason.error}`;
    case 'completed':
      return `It is over: it succeeded${reason.at ? ` at ${moment(reason.at)}` : ''}.`;
    case 'archived':
      return archivedText(reason, now);
    case 'running':
      return runningText(reason, now);
    case 'leaseExpired':
      return leaseText(reason, now);
    case 'scheduled':
      return `It is scheduled for ${moment(reason.at)}.`;
    case 'suspended':
      return suspendedText(reason, now);
    case 'retry':
      return `It has failed and is retried at ${moment(reason.at)}: retry ${reason.retried} of ${reason.maxRetry}. The last error is: ${reason.error || 'none'}`;
    case 'due':
      return `Its time has come, ${moment(reason.at)}: the next server of its queue that looks, every five seconds, makes it pending.`;
    case 'aggregating':
      return groupText(reason);
    case 'waiting':
      return waitingText(reason, now);
    case 'queuePaused':
      return 'Its queue is paused: no server takes tasks of it until somebody resumes it.';
    case 'notServed':
      return reason.servers === 0
        ? 'No server runs.'
        : `No server takes tasks of its queue; ${count(reason.servers, 'server runs', 'servers run')} for other queues.`;
    case 'draining':
      return `All servers of its queue have stopped taking tasks: ${names(reason.servers.map(serverName))}.`;
    case 'noHandler':
      return reason.others === 0
        ? `No server of its queue has a handler for its type: it fails there. They are ${names(reason.servers.map(serverName))}.`
        : `Some servers of its queue have no handler for its type, and it fails if one of them takes it: ${names(reason.servers.map(serverName))}.`;
    case 'handlersUnknown':
      return `It is not known whether a server has a handler for its type: Go's servers, and older releases, do not publish their handlers. They are ${names(reason.servers.map(serverName))}.`;
    case 'tooLate':
      return tooLateText(reason, now);
    case 'payloadTooNew':
      return newerText(reason, now);
    case 'handlerLimit':
    case 'queueLimit':
      return limitText(reason, now);
    case 'keyLimit':
      return keyLimitText(reason, now);
    case 'keyTurn':
      return turnText(reason);
    case 'priority':
      return `Its servers take tasks of queues with a higher priority first: ${names(reason.queues.map(({ queue, pending }) => `"${queue}" has ${pending} pending`))}.`;
    case 'behind':
      return reason.ahead === undefined
        ? 'More than 20,000 tasks of its queue are before it.'
        : `${count(reason.ahead, 'task of its queue is', 'tasks of its queue are')} before it.`;
    case 'serversFull':
      return `All slots are taken: ${reason.running} of ${reason.slots}, on ${count(reason.servers, 'server', 'servers')}.`;
    case 'clock':
      return `The clock of server ${serverName(reason.server)} is ${formatDuration(Math.round(Math.abs(reason.ahead) / 1000) * 1000)} ${reason.ahead > 0 ? 'ahead of' : 'behind'} that of Redis: tasks with a time run too ${reason.ahead > 0 ? 'early' : 'late'} there.`;
    case 'ready':
      return 'Nothing is in its way: a server takes it at once.';
  }
}

type Of<K extends TaskReason['kind']> = Extract<TaskReason, { kind: K }>;

const serverName = ({ host, pid }: ServerRef): string => `${host}:${pid}`;

const count = (number: number, one: string, many: string): string => `${number} ${number === 1 ? one : many}`;

const names = (all: readonly string[]): string =>
  all.length > MAX_NAMES ? `${all.slice(0, MAX_NAMES).join(', ')} and ${all.length - MAX_NAMES} more` : all.join(', ');

function missingText({ hasQueue, similar }: Of<'missing'>): string {
  if (hasQueue) return 'The queue has no such task: it succeeded and is not kept, was deleted, or was never enqueued.';
  return `There is no such queue: nothing was ever enqueued to it, or it was deleted.${similar === undefined ? '' : ` Did you mean "${similar}"?`}`;
}

const ARCHIVED: Readonly<Record<Of<'archived'>['cause'], string>> = {
  crashes: 'It is archived as a suspect: its servers died again and again while it ran',
  retries: 'It is archived: its last attempt failed, and it has no retry left',
  failure: 'It is archived with retries left: its last error is one that is not tried again, or somebody archived it',
  prerequisite: 'It is archived: a task it waits for has failed; it is revived when that succeeds after all',
  expiry: 'It is archived: it expired, as it had not begun in time (expiresIn), and it has not run',
  action: 'It is archived: it was archived before it had failed, by an action, a limit of time or a lost server',
};

function archivedText({ cause, error, failedAt, retried, maxRetry }: Of<'archived'>, now: number): string {
  const retries = cause === 'retries' ? ` (${retried} of ${maxRetry})` : '';
  const failed = failedAt && cause !== 'expiry' ? ` It failed at ${formatMoment(failedAt, now)}.` : '';
  return `${ARCHIVED[cause]}${retries}. It runs again only if somebody runs it.${failed}${error ? ` The last error is: ${error}` : ''}`;
}

function runningText({ server, since, deadline, leaseUntil }: Of<'running'>, now: number): string {
  const lease = `Its lease lasts until ${formatMoment(leaseUntil, now)}.`;
  if (!server) return `It is active: a server has just taken it, or one that does not say so. ${lease}`;
  const until = deadline && deadline.getTime() > 0 ? `, and may take until ${formatMoment(deadline, now)}` : '';
  return `It runs on ${serverName(server)} since ${formatMoment(since, now)}${until}. ${lease}`;
}

function leaseText({ leaseUntil, recoverableAt }: Of<'leaseExpired'>, now: number): string {
  const ended = leaseUntil ? `ended at ${formatMoment(leaseUntil, now)}` : 'is gone';
  const from = recoverableAt.getTime() > now ? `after ${formatMoment(recoverableAt, now)}` : 'within seconds';
  return `It is active, but its lease ${ended}: its server is gone or stuck. A server of its queue recovers it ${from}.`;
}

function suspendedText({ at, steps }: Of<'suspended'>, now: number): string {
  const doing = names(steps.map((step) => suspendedStepText(step, now)));
  return `Its handler ${doing}. It is called again at ${formatMoment(at, now)} at the latest.`;
}

function suspendedStepText({ name, state, wakeAt, signal, child }: SuspendedStep, now: number): string {
  const until = formatMoment(wakeAt, now);
  if (state === 'asleep') return `sleeps in step "${name}" until ${until}`;
  if (state === 'retrying') return `tries step "${name}" again at ${until}`;
  if (signal !== undefined) return `waits for the signal "${signal}" in step "${name}", which ends at ${until}`;
  return `waits for ${child ? `task ${child.id} in queue "${child.queue}"` : 'a task'} in step "${name}"`;
}

function groupText({ group, aggregated }: Of<'aggregating'>): string {
  const who =
    aggregated === false ? ' No server of its queue aggregates groups.' : ' A server makes one task of them all.';
  return `It waits in group "${group}" for others.${who}`;
}

function waitingText({ open, prerequisites, follows, until }: Of<'waiting'>, now: number): string {
  const ends = until ? ` Its wait ends at ${formatMoment(until, now)}, whatever happens.` : '';
  if (follows && open.length > 0) {
    return `It has the last payload of its key (latest), and begins when the one before it has ended, however that ends: ${names(open.map(waitedForText))}.${ends}`;
  }
  return `It waits for ${open.length} of ${count(prerequisites, 'task', 'tasks')}: ${names(open.map(waitedForText))}.${ends}`;
}

function waitedForText({ prerequisite, state, reason, paused, unserved }: OpenPrerequisite): string {
  const name =
    'id' in prerequisite
      ? `task ${prerequisite.id} in queue "${prerequisite.queue}"`
      : `${prerequisite.type} with key "${prerequisite.key}"`;
  if (state === 'failed') return `${name}, which has failed: ${reason ?? 'no reason'}`;
  if (paused) return `${name}, whose queue is paused`;
  return unserved ? `${name}, whose queue no server serves` : name;
}

function tooLateText({ at, limit, outcome }: Of<'tooLate'>, now: number): string {
  const what = limit === 'expiry' ? 'It had to begin by' : 'Its deadline was';
  return `${what} ${formatMoment(at, now)}: the next server that takes it ${outcome === 'drop' ? 'deletes' : 'archives'} it.`;
}

function newerText({ version, known, deferred, retryAt }: Of<'payloadTooNew'>, now: number): string {
  const what = `Its payload has version ${version}, and the servers of its queue know ${known} at most.`;
  if (!deferred) return `${what} A server that takes it puts it aside.`;
  const again = retryAt ? `, or is tried again at ${formatMoment(retryAt, now)}` : '';
  return `${what} It waits for a newer server${again}; it loses no retry.`;
}
