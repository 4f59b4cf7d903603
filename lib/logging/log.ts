import { BrokerUnavailableError } from '../errors.js';
import type { ConsoleAction } from '../events/console-action.js';
import type {
  AsynqEventMap,
  AsynqEventName,
  AsynqEvents,
  PeriodicRef,
  TaskOutcome,
  TaskRef,
} from '../events/events.js';
import { type AsynqLogger, printableLogger } from '../logger.js';
import { printableStack, shortened } from '../printable.js';
import { RedactedError } from '../redaction/redacted-error.js';
import type { Redactor } from '../redaction/redactor.js';
import { concealError } from './conceal.js';

type Wording = { readonly [E in AsynqEventName]?: (event: AsynqEventMap[E], logger: AsynqLogger) => void };

/**
 * Words the events of a server into logs: the only place that does. A task that ends well says nothing; one that will be retried
 * warns; one that is given up is an error with its stack. Each message is one line without control characters, whatever names it quotes.
 *
 * @param redactor what it hides of errors is not logged; without one nothing is asked
 * @returns a function that ends it
 */
export function logEvents(events: AsynqEvents, logger: AsynqLogger, redactor?: Redactor): () => void {
  const wording: Wording = { ...CONSOLE, ...TASKS, ...QUEUES, ...GROUPS, ...PERIODIC, ...SERVER, ...loops() };
  const safe = printableLogger(logger);
  const names = Object.keys(wording) as AsynqEventName[];
  const ends = names.map((event) => subscribe(events, event, wording, safe, redactor));
  return () => ends.forEach((end) => end());
}

function subscribe<E extends AsynqEventName>(
  events: AsynqEvents,
  event: E,
  wording: Wording,
  logger: AsynqLogger,
  redactor: Redactor | undefined,
): () => void {
  const word = wording[event]!;
  if (!redactor) return events.on(event, (payload) => word(payload, logger));
  return events.on(event, (payload) => word(concealError(event, payload, redactor), logger));
}

const TASKS: Wording = {
  taskFinished: (outcome, logger) => wordOutcome(outcome, logger),
  handlerStuck: ({ task, reason, seconds }, logger) =>
    logger.error(
      `${name(task)} was told to stop ${seconds} s ago (${text(reason)}), but its handler goes on and keeps its slot; ` +
        'pass task.signal on to what it waits for',
    ),
  taskDamaged: ({ task, error }, logger) =>
    logger.error(`Task ${task.id} in queue "${task.queue}" cannot be read and was archived as it is: ${text(error)}`),
  resultDropped: ({ task, error }, logger) =>
    logger.warn(`${name(task)} succeeded, but its result cannot be stored: ${text(error)}`),
  hookFailed: ({ hook, error }, logger) =>
    logger.error(`${hook} threw, and was passed over: ${text(error)}`, stack(error)),
  listenerFailed: ({ event, error, listener = 'A listener' }, logger) =>
    logger.error(`${listener} of the event "${event}" threw: ${text(error)}`, stack(error)),
  eventStreamFailed: ({ error, lost }, logger) =>
    logger.warn(
      `The stream of events misses ${count(lost, 'event')}, and what comes until it works again: ${text(error)}`,
    ),
  eventStreamUnread: ({ error }, logger) =>
    logger.warn(`The stream of events cannot be read, and is tried again: ${text(error)}`),
  listenersLeft: ({ listeners }, logger) =>
    logger.warn(`${count(listeners, 'listener')} of task events still running at the end, not waited for`),
};

function wordOutcome({ outcome, task, retried, error, retryAt }: TaskOutcome, logger: AsynqLogger): void {
  if (outcome === 'retry') {
    logger.warn(`${name(task)} failed (failures before: ${retried}), next attempt ${at(retryAt)}: ${text(error)}`);
  } else if (outcome === 'archived') {
    logger.error(`${name(task)} failed and was archived (failures before: ${retried}): ${text(error)}`, stack(error));
  } else if (outcome === 'revoked') {
    logger.log(`${name(task)} was revoked: ${text(error)}`);
  } else if (outcome === 'postponed') {
    logger.log(`${name(task)} was postponed, next attempt ${at(retryAt)}: ${text(error)}`);
  } else if (outcome === 'requeued') {
    logger.log(`${name(task)} was put back to the front of its queue`);
  } else if (outcome === 'lost') {
    logger.warn(`${name(task)} was taken over by another server; what its handler did here changes nothing`);
  }
}

const CONSOLE: Wording = {
  consoleAction: (action, logger) => {
    const line = `Console: ${wordAction(action)}${missing(action)}`;
    if (action.outcome === 'done' && !action.failed) logger.log(line);
    else logger.warn(line);
  },
  consoleTrailFailed: ({ action, error }, logger) =>
    logger.error(
      `The audit trail of the console could not be written, and misses: ${wordAction(action)}: ${text(error)}`,
    ),
};

/** `"alice" archive all retry tasks of queue "mail": done, 12 tasks`. Names are quoted, so that none passes for what stands around it. */
function wordAction(action: ConsoleAction): string {
  const { actor, outcome, count: done, failed, code, newTaskId, process } = action;
  const facts = [
    code === undefined ? outcome : `${outcome} (${code})`,
    done === undefined ? '' : count(done, 'task'),
    failed ? `not ${count(failed, 'task')}` : '',
    newTaskId === undefined ? '' : `new task ${quote(newTaskId)}`,
  ];
  return `${quote(actor)} ${wordDeed(action)}: ${facts.filter(Boolean).join(', ')} [${process}]`;
}

function wordDeed({ action, detail, queue, toQueue, taskId, group, state, schedule, scope }: ConsoleAction): string {
  const words = [
    action.replaceAll('_', ' '),
    scope === undefined ? '' : [scope === 'all' ? 'all' : 'some', state, 'tasks'].filter(Boolean).join(' '),
    taskId === undefined ? '' : `task ${quote(taskId)}`,
    schedule === undefined ? '' : quote(schedule),
    group === undefined ? '' : `of group ${quote(group)}`,
    queue === undefined ? '' : `queue ${quote(queue)}`,
    toQueue === undefined ? '' : `into queue ${quote(toQueue)}`,
    detail === undefined ? '' : `(${detail})`,
  ];
  return words.filter(Boolean).join(' ');
}

const missing = ({ missing: entries }: ConsoleAction): string =>
  entries === undefined ? '' : `; the trail misses ${entries} before it`;

const quote = (name: string): string => JSON.stringify(name);

const QUEUES: Wording = {
  tasksRecovered: ({ queue, retried, archived }, logger) =>
    logger.warn(
      `Took over tasks of a server that went away, queue "${queue}": ${retried} to retry, ${archived} archived`,
    ),
  queueRepaired: ({ queue, ghosts, leases }, logger) =>
    logger.warn(
      `Repaired queue "${queue}": ${ghosts} ids without a task removed, ${leases} running tasks given a lease`,
    ),
};

const PERIODIC: Wording = {
  periodicTaskSkipped: ({ entry, reason }, logger) =>
    reason === 'missed'
      ? logger.warn(`${periodic(entry)} was missed from ${entry.planned.toISOString()} on, and is not made up for`)
      : logger.log(`${periodic(entry)} was passed over at ${entry.planned.toISOString()}: its last task is unfinished`),
  periodicTaskFailed: ({ entry, error }, logger) =>
    logger.warn(`${periodic(entry)} enqueued nothing at ${entry.planned.toISOString()}: ${text(error)}`),
  periodicSourceFailed: ({ source, error }, logger) =>
    logger.error(`${source} gave no usable periodic tasks, the old ones stay: ${text(error)}`, stack(error)),
};

const GROUPS: Wording = {
  aggregationFailed: ({ queue, group, size, error, retryAt }, logger) =>
    logger.error(
      `Aggregating ${count(size, 'task')} of group "${group}" in queue "${queue}" failed, ` +
        `they go back to it ${at(retryAt)}: ${text(error)}`,
      stack(error),
    ),
  groupsReclaimed: ({ queue, tasks }, logger) =>
    logger.warn(
      `${count(tasks, 'task')} of queue "${queue}" went back to their groups: nobody finished aggregating them`,
    ),
  groupsRepaired: ({ queue, listed, removed }, logger) =>
    logger.warn(`Repaired the list of groups of queue "${queue}": ${listed} added, ${removed} empty ones removed`),
  groupNotAggregated: ({ queue, group }, logger) =>
    logger.warn(
      `Tasks wait in group "${group}" of queue "${queue}", and no server aggregates them: ` +
        'add a method with @TaskAggregator() for it, or start the server that has one',
    ),
};

const SERVER: Wording = {
  wakeUnavailable: ({ error }, logger) =>
    logger.warn(`Redis gives no wake-up notices, so idle queues are polled: ${text(error)}`),
  handlersIdle: ({ handlers }, logger) =>
    logger.log(`This process only produces (server: false): its ${count(handlers, 'task handler')} will not run here`),
  handlersMissing: (_, logger) =>
    logger.warn(
      'No server is started, as this application has no task handler: list the class that has them under providers, ' +
        'or say server: false if this process only produces',
    ),
  serverStarted: ({ concurrency, queues }, logger) =>
    logger.log(`Server started: concurrency ${concurrency}, queues ${priorities(queues)}`),
  serverStopped: ({ active }, logger) => logger.log(`Stopped fetching; ${count(active, 'task')} still running`),
  serverDrained: (_, logger) => logger.log('Drained: nothing runs here any more'),
  storeEvicts: ({ address, policy }, logger) =>
    logger.warn(
      `Redis at ${address} removes keys when its memory is full (maxmemory-policy ${policy}), and so loses tasks: ` +
        'set maxmemory-policy noeviction',
    ),
  storeOutdated: ({ address, version, needed }, logger) =>
    logger.warn(`Redis at ${address} is version ${version}; nestjs-asynq needs ${needed} or later: upgrade it`),
  storeClockDiffers: ({ address, ahead }, logger) =>
    logger.warn(
      `The clock of this machine is ${Math.round(Math.abs(ahead) / 1000)} s ${ahead > 0 ? 'ahead of' : 'behind'} that of Redis at ${address}: ` +
        'where the clocks of servers differ, tasks start early or late, and leases are taken for lost: set both by NTP',
    ),
  shutdownTimedOut: ({ active, aggregating }, logger) => {
    const sets = aggregating === 0 ? '' : `; ${count(aggregating, 'aggregation')} still running, not waited for`;
    logger.warn(`The shutdown timeout has passed: ${count(active, 'task')} still running, now told to stop${sets}`);
  },
  serverClosed: ({ requeued }, logger) =>
    logger.log(requeued === 0 ? 'Server closed' : `Server closed; ${count(requeued, 'task')} put back to the queue`),
};

/** Different warnings of one outage that are remembered; texts with something in them that varies must not fill the memory. */
const MOST_TOLD = 100;

/** While something is wrong every loop fails again and again. It is said once by loop, and for all when Redis is away. */
function loops(): Wording {
  const told = new Set<string>();
  return {
    loopFailed: ({ loop, error }, logger) => {
      const reason = text(error);
      const away = error instanceof BrokerUnavailableError;
      const line = away ? `${reason}; trying again` : `The ${loop} failed and tries again: ${reason}`;
      if (told.has(line)) return;
      if (told.size >= MOST_TOLD) told.clear();
      told.add(line);
      logger.warn(line);
    },
    queueUnreachable: ({ queue, error, unsettled }, logger) =>
      logger.warn(
        `Redis does not answer for queue "${queue}" (${count(unsettled, 'finished task')} waiting to be stored): ${text(error)}`,
      ),
    queueReachable: ({ queue }, logger) => {
      told.clear();
      logger.log(`Redis answers again for queue "${queue}"`);
    },
  };
}

const periodic = ({ type, spec }: PeriodicRef): string => `Periodic task ${type} (${spec})`;

const name = ({ type, id, queue }: TaskRef): string => `Task ${type} ${id} in queue "${queue}"`;

const count = (amount: number, what: string): string => `${amount} ${what}${amount === 1 ? '' : 's'}`;

const at = (time: Date | undefined): string => (time ? `at ${time.toISOString()}` : 'later');

const priorities = (queues: Readonly<Record<string, number>>): string =>
  Object.entries(queues)
    .map(([queue, priority]) => `${queue}=${priority}`)
    .join(' ');

function text(error: unknown): string {
  try {
    return shortened(error instanceof Error ? String(error.message) || error.name : String(error));
  } catch {
    return 'an error that cannot be shown';
  }
}

function stack(error: unknown): string | undefined {
  try {
    return error instanceof Error && !(error instanceof RedactedError) ? printableStack(error) : undefined;
  } catch {
    return undefined; // the message says so
  }
}
