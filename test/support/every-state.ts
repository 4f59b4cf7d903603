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
