import type { EdgeState, StoredWait } from '../broker/links.js';
import type { TaskRef } from '../events/events.js';
import type { TaskInfo } from '../task/info.js';
import { nearest } from '../validation.js';
import type { TaskMessage } from '../wire/message.js';
import type { LeftReason, LeftTasks } from './run-summary.js';

/** The texts of TestingError: each says what to change in the test. */

export const noModule =
  'AsynqTester.from: this module has no AsynqModule; import AsynqModule.forRoot(...), or the module that imports it';

export const noInMemoryBroker = (connection: string): string => {
  const token = connection === 'default' ? 'ASYNQ_BROKER' : `getAsynqBrokerToken('${connection}')`;
  return (
    `AsynqTester.from: the connection "${connection}" is not on an InMemoryBroker; before compile() add ` +
    `.overrideProvider(${token}).useClass(InMemoryBroker)`
  );
};

export const notInitialized = 'the outbox is not ready before the application is initialized; await app.init() first';

export const noDatabase =
  'there is no database behind a fakeDataSource(): override what uses its connections, such as AsynqOutbox by InMemoryOutbox';

export const noHandlers = (connection: string): string =>
  `nothing can run: this module has no @TaskHandler for the connection "${connection}"; ` +
  'add the module or the provider that handles its tasks';

export const runsOn = (limit: number, last: string): string =>
  `more than ${limit} attempts and still tasks to run (the last: "${last}"): does a task enqueue itself without a delay? ` +
  'Set { limit } if that many are right';

export const notRunnable = (type: string, state: string): string =>
  `work: the task "${type}" became "${state}" and not pending, so it cannot be run alone; leave out its group`;

export const alreadyThere = ({ id, type, state }: TaskInfo): string =>
  `work: there is such a task "${type}" already (id ${id}), and its state is "${state}"; advance the clock, or use another key`;

export const deferred = (type: string): string =>
  `work: the payload of the task "${type}" has a newer version than its handler knows, so it waits for another server`;

export const nestedRun = (method: string): string =>
  `${method}: called by a handler, an aggregator or a listener, while the tester waits for that one to end; ` +
  'call it in the test, and let handlers enqueue their tasks: the same run runs them, too';

const REMEDY = '`advance` by more than their time-outs, or give { patience } when they work on something real';

export const stillRunning = (tasks: readonly (TaskRef & { deadline: Date; aborted: unknown })[]): string => {
  const list = tasks.slice(0, 5).map(({ type, id, deadline, aborted }) => {
    const state = aborted
      ? 'ignores its aborted signal'
      : `waits for its signal, which comes at ${deadline.toISOString()}`;
    return `"${type}" (id ${id}) ${state}`;
  });
  const more = tasks.length > 5 ? ` and ${tasks.length - 5} more` : '';
  return `handlers do not end, and the clock does not move for them: ${list.join('; ')}${more}. ${REMEDY}`;
};

/** The most prerequisites that a text names. */
const MAX_NAMED = 3;

/** What a task still waits for, as text. */
export function whatFor({ edges, onFailure, deadline }: StoredWait): string {
  const open = edges.filter(({ state }) => state === 'waiting' || (state === 'failed' && onFailure === 'wait'));
  const named = open.slice(0, MAX_NAMED).map((edge) => nameOf(edge));
  const more = open.length > MAX_NAMED ? ` and ${open.length - MAX_NAMED} more` : '';
  const until = deadline === undefined ? '' : `, until ${new Date(deadline * 1000).toISOString()}`;
  return `waits for ${named.join(', ')}${more}${until}`;
}

function nameOf({ prerequisite, state, reason }: EdgeState): string {
  const name =
    'id' in prerequisite
      ? `task "${prerequisite.id}" in the queue "${prerequisite.queue}"`
      : `a "${prerequisite.type}" with the key "${prerequisite.key}"`;
  return state === 'failed' ? `${name} (failed: ${reason ?? 'no reason'})` : name;
}

/** @param waitlist the one that the task is in */
export const whyLeft = (
  reason: Exclude<LeftReason, 'waiting'>,
  { queue, type, groupKey: group }: TaskMessage,
  waitlist: string | undefined,
): string =>
  ({
    notServed: `the server does not serve the queue "${queue}": add it to the option server.queues`,
    paused: `the queue "${queue}" is paused: unpause it`,
    noAggregator: `no @TaskAggregator aggregates the group "${group}"`,
    limited: `a limit of ${waitlist === undefined ? `the queue "${queue}"` : `the handlers of "${waitlist}"`} holds them back: advance the clock`,
    newerPayload: `the payload of a "${type}" is newer than its handler: raise the version of its definition`,
  })[reason];

/** How many steps a text names. */
const MAX_STEPS_NAMED = 20;

export function noSuchStep(step: string, known: readonly string[]): string {
  const near = nearest(step, known);
  const named = known.slice(0, MAX_STEPS_NAMED).map((name) => `"${name}"`);
  const more = known.length > MAX_STEPS_NAMED ? ` and ${known.length - MAX_STEPS_NAMED} more` : '';
  const list = named.length > 0 ? `stored are ${named.join(', ')}${more}.` : 'no task has a step.';
  const hint = near === undefined ? list : `did you mean "${near}"?`;
  return `crashAfter: no step "${step}" was stored in this run; ${hint} Call it right before the run in which that step comes`;
}

export const noCrashInSleep = (step: string): string =>
  `crashAfter: no server died after step "${step}" in this run: it was stored before, or it is a sleep or a wait, with which the call of ` +
  'the handler ends. Name the step before it, or the one behind it';

/** @param left what could run @param delayed what is due later */
export const worksOn = (
  left: readonly LeftTasks[],
  delayed: readonly Pick<TaskInfo, 'type' | 'state' | 'nextProcessAt'>[],
): string => {
  const lines = [
    ...left.map(({ count, type, why }) => `${count} of "${type}": ${why}`),
    ...delayed.map(
      ({ type, state, nextProcessAt }) =>
        `"${type}" (${state}) is due at ${nextProcessAt?.toISOString()}: advance the clock`,
    ),
  ];
  const more = lines.length > MAX_NAMED ? `; and ${lines.length - MAX_NAMED} more` : '';
  return (
    `drainWhile: the work has not ended, and no task can run: ${lines.slice(0, MAX_NAMED).join('; ')}${more}. ` +
    'Give { patience } if the work takes long without them'
  );
};

export const noSuchHandler = (label: string, near: string | undefined, known: string): string =>
  `there is no method ${label}; ${near ? `did you mean "${near}"?` : `handlers are ${known}`}`;

export const otherConnection = (label: string, connection: string): string =>
  `${label} is for the connection "${connection}"; ask its tester: AsynqTester.from(app, '${connection}')`;
