import { type NewRun, type NewStep, taskIdOfStep } from '../../lib/broker/workflows.js';
import { Relay } from '../../lib/links/relay.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import type { Broker, LeasedTask, Settlement } from '../../lib/broker/broker.js';
import type { Wait } from '../../lib/broker/links.js';
import { floorSeconds } from '../../lib/clock.js';
import type { TaskMessage } from '../../lib/wire/message.js';
import { request } from './messages.js';

type How = (task: LeasedTask, now: number) => Settlement;

const fails = (message: TaskMessage, now: number): TaskMessage => ({
  ...message,
  retried: message.retried + 1,
  errorMsg: 'connect ECONNREFUSED',
  lastFailedAt: now,
});

const HOW: Readonly<Record<string, How>> = {
  completed: ({ lease, message }, now) => ({
    kind: 'complete',
    lease,
    message: {
      ...message,
      completedAt: now,
    },
    expiresAt: now + 3600,
    result: Buffer.from('{"ok":true}'),
  }),
  retry: ({ lease, message }, now) => ({
    kind: 'retry',
    lease,
    message: fails(message, now),
    retryAt: now + 60,
    countAsFailure: true,
  }),
  archived: ({ lease, message }, now) => ({ kind: 'archive', lease, message: fails(message, now) }),
};

/**
 * One task in every state, with the state for its id; of the group `g`. The queue holds no other.
 */
export async function arrangeEveryState(broker: Broker, queue = 'default'): Promise<void> {
  const now = floorSeconds(broker.clock.now());
  const make = (id: string, more: Partial<TaskMessage> = {}) =>
    request({ queue, id, type: `email:${id}`, payload: Buffer.from(`{"id":"${id}"}`), ...more });
  await broker.producer.enqueue(queue, [
    make('completed', { retention: 3600 }),
    make('retry'),
    make('archived'),
    make('active'),
  ]);
  const { tasks } = await broker.consumer.exchange(queue, { settle: [], take: 4 });
  const settle = tasks.flatMap((task) => HOW[task.lease.id]?.(task, now) ?? []);
  await broker.consumer.exchange(queue, { settle, take: 0 });
  await broker.producer.enqueue(queue, [
    make('pending'),
    { ...make('scheduled'), processAt: now + 3600 },
    make('aggregating', { groupKey: 'g' }),
  ]);
}

/** A task in the waitlist `mail`, with the id `held`; before any task of the queue is pending. */
export async function arrangeHeld(broker: Broker, queue = 'default'): Promise<void> {
  const id = 'held';
  await broker.producer.enqueue(queue, [
    request({ queue, id, type: `email:${id}`, payload: Buffer.from(`{"id":"${id}"}`) }),
  ]);
  const { tasks } = await broker.consumer.exchange(queue, { settle: [], take: 1 });
  await broker.consumer.exchange(queue, {
    settle: [{ kind: 'wait', lease: tasks[0]!.lease, waitlist: 'mail' }],
    take: 0,
  });
}

/** A task that waits for another, with the id `waiting`. */
export async function arrangeWaiting(broker: Broker, queue = 'default'): Promise<void> {
  const id = 'waiting';
  const wait: Wait = {
    prerequisites: [{ type: 'payment:capture', key: 'order-7' }],
    onFailure: 'cancel',
    onTimeout: 'archive',
    deadline: floorSeconds(broker.clock.now()) + 7200,
  };
  const task = request({ queue, id, type: `email:${id}`, payload: Buffer.from(`{"id":"${id}"}`) });
  await broker.links.enqueue(queue, [{ ...task, wait }]);
}

/** The run or the batch that a route of the console can work on, by its path. */
export const runFor = (path: string): string => (path.endsWith(':cancel') ? 'run-open' : 'run-failed');
export const batchFor = (path: string): string => (path.endsWith(':close') ? 'batch-open' : 'batch-ended');

/**
 * Two runs with a task each, and two batches: see `runFor` and `batchFor`.
 *
 * @param steps the queue of the tasks
 * @param suffix of the ids
 */
export async function arrangeRunsAndBatches(
  broker: Broker,
  queue = 'default',
  steps = 'steps',
  suffix = '',
): Promise<void> {
  const step = (run: string, name: string, after: string[] = []): NewStep => ({
    name,
    request: request({ queue: steps, id: taskIdOfStep(run, name), type: `step:${name}` }),
    after,
    onFailure: 'cancel',
    optional: false,
    delay: 0,
  });
  const run = (id: string): NewRun => ({
    id,
    name: 'order',
    steps: [step(id, 'pay'), step(id, 'ship', ['pay'])],
    retention: 3600,
    deadline: undefined,
  });
  const relay = new Relay(broker.links);
  relay.carry(await broker.workflows.start(queue, [run(`run-open${suffix}`), run(`run-failed${suffix}`)]));
  await relay.idle();
  await new AsynqInspector(broker, relay).archiveTask(steps, taskIdOfStep(`run-failed${suffix}`, 'pay'));
  await relay.idle();
  const closeBy = floorSeconds(broker.clock.now()) + 3600;
  for (const id of [`batch-open${suffix}`, `batch-ended${suffix}`]) {
    await broker.batches.open(queue, { id, name: 'import', callbacks: {}, closeBy, retention: 3600 });
  }
  await broker.batches.close(queue, `batch-ended${suffix}`);
}
