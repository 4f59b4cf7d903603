import { expect } from 'vitest';
import type {
  Broker,
  EnqueueRequest,
  EnqueueStatus,
  ExchangeReply,
  Lease,
  LeasedTask,
  Settlement,
  SettleStatus,
} from '../../lib/broker/broker.js';
import type { QueueSnapshot, Snapshot } from '../../lib/broker/memory/snapshot.js';
import { ManualClock, floorSeconds } from '../../lib/clock.js';
import type { SchedulerEnqueueEvent, SchedulerEntry, TaskMessage } from '../../lib/wire/message.js';
import type { TaskState } from '../../lib/wire/states.js';
import { request } from '../support/messages.js';
import { emptyDraft } from '../support/redis-dump.js';

/** A broker under test, and access to its data that does not go through the broker. */
export interface World {
  readonly broker: Broker;
  /** Closes the broker and deletes its data. */
  cleanup(): Promise<void>;
  /** All stored data, read without the broker. */
  dump(): Promise<Snapshot>;
  /** Sets the hash field `group` of a task, which RunTask on a group's task leaves there. */
  nameGroup(queue: string, id: string, group: string): Promise<void>;
  /** Ends a lock as if it had expired. */
  expireLock(queue: string, key: string): Promise<void>;
  /** Completes an active task as a server does that knows no links: it is kept for its retention, or deleted. */
  completeUnseen(queue: string, id: string): Promise<void>;
  /** What schedulers have published. */
  schedulerEntries(): Promise<SchedulerEntry[]>;
  /** The history of a periodic entry, oldest first. */
  enqueueEvents(entryId: string): Promise<readonly SchedulerEnqueueEvent[]>;
}

export type MakeWorld = (clock: ManualClock) => Promise<World>;

/**
 * A whole second at noon: the clock only moves when a test moves it, so no test crosses midnight by
 * chance.
 */
export const START = Date.UTC(2030, 5, 15, 12, 0, 0);

/**
 * Short calls of one broker for tests. They concern the queue `default` unless another one is
 * named.
 */
export class Driver {
  constructor(
    readonly world: World,
    readonly clock: ManualClock,
  ) {}

  get broker(): Broker {
    return this.world.broker;
  }

  /** Unix seconds of the manual clock, rounded down. */
  get now(): number {
    return floorSeconds(this.clock.now());
  }

  async enqueue(requests: EnqueueRequest[], queue = 'default'): Promise<EnqueueStatus[]> {
    return this.broker.producer.enqueue(queue, requests);
  }

  /** Enqueues a task that has these message fields and options; returns its id. */
  async add(partial: Partial<TaskMessage> = {}, options: Omit<EnqueueRequest, 'message'> = {}): Promise<string> {
    const one = request(partial, options);
    expect(await this.enqueue([one], one.message.queue)).toEqual(['enqueued']);
    return one.message.id;
  }

  async exchange(settle: Settlement[], take: number, queue = 'default'): Promise<ExchangeReply> {
    return this.broker.consumer.exchange(queue, { settle, take });
  }

  async take(count = 1, queue = 'default'): Promise<LeasedTask[]> {
    const reply = await this.exchange([], count, queue);
    expect(reply.damaged).toEqual([]);
    return reply.tasks;
  }

  /** Takes the next task, which must exist. */
  async takeOne(queue = 'default'): Promise<LeasedTask> {
    const [task] = await this.take(1, queue);
    if (!task) throw new Error(`no task was pending in "${queue}"`);
    return task;
  }

  /** Enqueues a task and takes it; nothing else may be pending. */
  async takeNew(
    partial: Partial<TaskMessage> = {},
    options: Omit<EnqueueRequest, 'message'> = {},
  ): Promise<LeasedTask> {
    const id = await this.add(partial, options);
    const task = await this.takeOne(partial.queue);
    expect(task.lease.id).toBe(id);
    return task;
  }

  /** Enqueues tasks and takes them; returns them in the order in which they were taken. */
  async takeNewMany(count: number): Promise<LeasedTask[]> {
    await this.enqueue(Array.from({ length: count }, () => request()));
    return this.take(count);
  }

  async settle(...settlements: Settlement[]): Promise<SettleStatus[]> {
    const queue = settlements[0]?.lease.queue ?? 'default';
    return (await this.exchange(settlements, 0, queue)).settled;
  }

  async queue(name = 'default'): Promise<QueueSnapshot> {
    return (await this.world.dump())[name] ?? emptyDraft();
  }

  async stateOf(id: string, queue = 'default'): Promise<TaskState | undefined> {
    return (await this.broker.inspection.getTask(queue, id))?.state;
  }

  /** Creates a task in the given state; returns its id. */
  async arrange(state: TaskState): Promise<string> {
    if (state === 'pending') return this.add();
    if (state === 'scheduled') return this.add({}, { processAt: this.now + 60 });
    if (state === 'aggregating') return this.add({ groupKey: 'g' });
    const task = await this.takeNew();
    if (state === 'completed') expect(await this.settle(completion(task, this.now + 60))).toEqual(['settled']);
    if (state === 'held') expect(await this.settle(deferral(task))).toEqual(['settled']);
    if (state === 'retry') expect(await this.settle(retrial(task, this.now + 60))).toEqual(['settled']);
    if (state === 'archived') expect(await this.settle(archival(task))).toEqual(['settled']);
    return task.lease.id;
  }
}

/** The `it` of a suite: each test receives a driver. */
export interface DriverTest {
  (name: string, test: (context: { driver: Driver }) => Promise<void>): void;
  for<T>(cases: readonly T[]): (name: string, test: (one: T, context: { driver: Driver }) => Promise<void>) => void;
}

export const leaseOf = (id: string, expiresAt: number): Lease => ({ queue: 'default', id, expiresAt });

/** Into the waitlist `w`. */
export const deferral = ({ lease }: LeasedTask): Settlement => ({ kind: 'wait', lease, waitlist: 'w' });

type Kind<K extends Settlement['kind']> = Extract<Settlement, { kind: K }>;

export const done = ({ lease, message, links }: LeasedTask): Kind<'done'> => {
  const settlement = { kind: 'done', lease, uniqueKey: message.uniqueKey } as const;
  const [link] = links ?? [];
  return link?.k === 'b' && links?.length === 1 ? { ...settlement, member: link.batch } : settlement;
};

export const completion = ({ lease, message }: LeasedTask, expiresAt: number, result?: Buffer): Kind<'complete'> => ({
  kind: 'complete',
  lease,
  message,
  expiresAt,
  result,
});

export const retrial = ({ lease, message }: LeasedTask, retryAt: number, countAsFailure = true): Kind<'retry'> => ({
  kind: 'retry',
  lease,
  message,
  retryAt,
  countAsFailure,
});

export const archival = ({ lease, message }: LeasedTask): Kind<'archive'> => ({ kind: 'archive', lease, message });

export const requeueing = ({ lease }: LeasedTask): Kind<'requeue'> => ({ kind: 'requeue', lease });

/** Every kind of settlement of one task. */
export const allSettlements = (task: LeasedTask, now: number): Settlement[] => [
  done(task),
  completion(task, now + 60, Buffer.from('late')),
  retrial(task, now + 60),
  archival(task),
  requeueing(task),
];

/**
 * Locks in Redis expire in real time while the test's clock stands still, so their remaining time
 * is left out.
 */
export const withoutLockExpiry = (snapshot: Snapshot): unknown =>
  Object.fromEntries(
    Object.entries(snapshot).map(([name, queue]) => {
      const locks = Object.entries(queue.locks).map(([key, { owner }]) => [key, owner]);
      return [name, { ...queue, locks: Object.fromEntries(locks) }];
    }),
  );

/**
 * Expects exactly these properties of the queue `default`; unlike in toMatchObject, `{}` matches
 * only an empty object.
 */
export async function expectQueue(driver: Driver, expected: Partial<QueueSnapshot>): Promise<void> {
  const queue = await driver.queue();
  const names = Object.keys(expected) as (keyof QueueSnapshot)[];
  expect(Object.fromEntries(names.map((name) => [name, queue[name]]))).toEqual(expected);
}

/** Runs `work` and expects that it changes no stored data. */
export async function expectUnchanged(driver: Driver, work: () => Promise<void>): Promise<void> {
  const before = withoutLockExpiry(await driver.world.dump());
  await work();
  expect(withoutLockExpiry(await driver.world.dump())).toEqual(before);
}
