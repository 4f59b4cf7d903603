import type { TaskRef } from '../events/events.js';
import type { LeftReason } from './run-summary.js';

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

export const noHandlers = (connection: string): string =>
  `nothing can run: this module has no @TaskHandler for the connection "${connection}"; ` +
  'add the module or the provider that handles its tasks';

export const runsOn = (limit: number, last: string): string =>
  `more than ${limit} attempts and still tasks to run (the last: "${last}"): does a task enqueue itself without a delay? ` +
  'Set { limit } if that many are right';

export const notRunnable = (type: string, state: string): string =>
  `work: the task "${type}" became "${state}" and not pending, so it cannot be run alone; leave out its group`;

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

export const whyLeft = (reason: LeftReason, queue: string, group: string | undefined): string =>
  ({
    notServed: `the server does not serve the queue "${queue}": add it to the option server.queues`,
    paused: `the queue "${queue}" is paused: resume it`,
    noAggregator: `no @TaskAggregator aggregates the group "${group}"`,
    limited: `a limit of the queue "${queue}" holds them back: advance the clock`,
  })[reason];
