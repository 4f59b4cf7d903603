import { BrokerUnavailableError } from '../errors.js';
import type { AsynqLogger } from '../logger.js';
import { count, errorText, type Wording } from './wording.js';

export const QUEUES: Wording = {
  tasksRecovered: ({ queue, retried, archived, suspects }, logger) => {
    const crashed = suspects === 0 ? '' : `, ${suspects} of them as suspects, as their servers die again and again`;
    logger.warn(
      `Recovered tasks of a lost server, queue "${queue}": ${retried} to retry, ${archived} archived${crashed}`,
    );
  },
  queueRepaired: ({ queue, dangling, leases }, logger) =>
    logger.warn(`Repaired queue "${queue}": ${dangling} dangling ids removed, ${leases} running tasks given a lease`),
  linesFound: ({ queue }, logger) =>
    logger.warn(
      `Tasks of queue "${queue}" wait in turns by key, and this process has no queues: { ${JSON.stringify(queue)}: { fairness: true } }: it takes ` +
        'turns from now on; give the option to every process that serves the queue or enqueues to it, or no other takes these tasks',
    ),
};

export const SERVER: Wording = {
  loopBlocked: ({ milliseconds, types }, logger) =>
    logger.warn(
      `The event loop stood still for ${(milliseconds / 1000).toFixed(1)} s with tasks of type ` +
        `${types.map((type) => JSON.stringify(type)).join(', ')}: heartbeats, cancellation and other handlers waited`,
    ),
  threadDied: ({ reason }, logger) => logger.warn(`A thread of handlers is gone: ${reason}`),
  leasesUnguarded: ({ reason }, logger) =>
    logger.warn(`A task that keeps the event loop busy for a minute may run twice: ${reason}`),
  wakeUnavailable: ({ error }, logger) =>
    logger.warn(`Redis sends no wake-ups, so idle queues are polled: ${errorText(error)}`),
  handlersIdle: ({ handlers }, logger) =>
    logger.log(`This process only produces (server: false): its ${count(handlers, 'task handler')} will not run here`),
  handlersMissing: (_, logger) =>
    logger.warn(
      'No server is started, as this application has no task handler: list the class that has them under providers, ' +
        'or set server: false if this process only produces',
    ),
  handlersNotProvided: ({ classes }, logger) =>
    logger.warn(
      `No module provides ${someOf(classes)}, so that ${classes.length === 1 ? 'its' : 'their'} handlers do not run here: list ` +
        `${classes.length === 1 ? 'the class' : 'the classes'} under providers`,
    ),
  queueNotServed: ({ queue, near, handler }, logger) => {
    const whose = handler === undefined ? 'Tasks go to' : `The definition that ${handler} handles puts tasks into`;
    const remedy = near === undefined ? '' : `; did you mean "${near}"?`;
    logger.warn(
      `${whose} queue "${queue}", which no server serves${remedy || ','} ` +
        `${remedy ? 'Else name it' : 'so they wait: name it'} in server: { queues } of the process that is to run them`,
    );
  },
  queueShared: ({ queue, host, pid, theirs, ours }, logger) =>
    logger.warn(
      `Queue "${queue}" is also served by process ${pid} on ${host}, which handles other types (${someOf(theirs)}) than this one ` +
        `(${someOf(ours)}): each takes tasks that only the other can run. Give each application a keyPrefix or queues of its own`,
    ),
  shutdownHooksMissing: (_, logger) =>
    logger.warn(
      'Nothing handles SIGTERM, so a deploy kills this process with its tasks, which wait half a minute for another: call ' +
        'app.enableShutdownHooks()',
    ),
  payloadChanged: ({ type, path, what }, logger) =>
    logger.warn(`The payload of task "${type}" is not what its handler gets: ${path} is ${what}`),
  payloadFieldMissing: ({ type, handler, field, near }, logger) =>
    logger.warn(
      `${handler} takes the field "${field}" of task "${type}", which its payload has not; did you mean "${near}"?`,
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
  storeClockDiffers: ({ address, ahead }, logger) => {
    const seconds = Math.round(Math.abs(ahead) / 1000);
    logger.warn(
      `The clock of this machine is ${seconds} s ${ahead > 0 ? 'ahead of' : 'behind'} that of Redis at ${address}: ` +
        'where the clocks of servers differ, tasks start early or late, and leases count as lost: set both by NTP',
    );
  },
  shutdownTimedOut: ({ active, aggregating }, logger) => {
    const sets = aggregating === 0 ? '' : `; ${count(aggregating, 'aggregation')} still running, not waiting for it`;
    logger.warn(`The shutdown timeout has passed: ${count(active, 'task')} still running, aborting${sets}`);
  },
  serverClosed: ({ requeued }, logger) =>
    logger.log(requeued === 0 ? 'Server closed' : `Server closed; ${count(requeued, 'task')} put back to the queue`),
};

/** How many warnings are remembered: their texts may vary without end. */
const MAX_REMEMBERED = 100;

/** Warns once with each line. `logged`: the lines so far. */
function onceWarner() {
  const logged = new Set<string>();
  const warnOnce = (line: string, logger: AsynqLogger): void => {
    if (logged.has(line)) return;
    if (logged.size >= MAX_REMEMBERED) logged.clear();
    logged.add(line);
    logger.warn(line);
  };
  return { logged, warnOnce };
}

/** Each new version is a line, and not each task of it. */
export function payloadWording(): Wording {
  const { warnOnce } = onceWarner();
  return {
    payloadTooNew: ({ task: { type, queue }, version, known }, logger) =>
      warnOnce(
        `Tasks "${type}" in queue "${queue}" have payloads of version ${version}, and their handler here knows ` +
          `${known === 1 ? 'only 1' : `up to ${known}`}: they wait for a server with a newer definition`,
        logger,
      ),
  };
}

/**
 * During an outage every loop fails again and again. A failure is logged once per loop, and only
 * once for all loops when Redis is away.
 */
export function loopWording(): Wording {
  const { logged, warnOnce } = onceWarner();
  const warn = (error: unknown, line: string, logger: AsynqLogger): void =>
    warnOnce(error instanceof BrokerUnavailableError ? `${errorText(error)}; trying again` : line, logger);
  return {
    loopFailed: ({ loop, error }, logger) =>
      warn(error, `The ${loop} failed and tries again: ${errorText(error)}`, logger),
    relayFailed: ({ place, error }, logger) =>
      warn(
        error,
        `The messages of linked tasks for "${place}" could not be delivered, a server tries again: ${errorText(error)}`,
        logger,
      ),
    queueUnreachable: ({ queue, error, unsettled }, logger) =>
      logger.warn(
        `Redis does not reply for queue "${queue}" (${count(unsettled, 'finished task')} waiting to be stored): ` +
          errorText(error),
      ),
    queueReachable: ({ queue }, logger) => {
      logged.clear();
      logger.log(`Redis replies again for queue "${queue}"`);
    },
  };
}

const someOf = (names: readonly string[]): string => names.slice(0, 5).join(', ') + (names.length > 5 ? ', …' : '');

const priorities = (queues: Readonly<Record<string, number>>): string =>
  Object.entries(queues)
    .map(([queue, priority]) => `${queue}=${priority}`)
    .join(' ');
