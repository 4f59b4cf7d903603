import { WaitingClock } from '../clock.js';
import type { Broker } from '../broker/broker.js';
import type { GroupsRole } from '../broker/groups.js';
import { Flight } from '../enqueue/flight.js';
import { injected, type PreparedTask } from '../enqueue/prepared-task.js';
import type { EnqueueReply, Producing } from '../enqueue/producing.js';
import { type EnqueueOutcome, outcomeOf, resultOf, type EnqueueResult } from '../enqueue/enqueue-result.js';
import { CALL_LIMITS } from '../enqueue/requests.js';
import type { AsynqEvents } from '../events/events.js';
import type { Relay } from '../links/relay.js';
import type { ReadRoom } from '../task/queue-settings.js';
import type { TaskInfo } from '../task/info.js';
import type { EnqueueSpan, Tracing } from '../tracing/tracing.js';
import type { EnqueueTransactions } from '../transactions/enqueue-transactions.js';
import { Bulk } from './bulk.js';
import type { PreparedCall } from './call-preparer.js';
import { GroupReminder } from './group-reminder.js';
import { HeldTasks } from './held-tasks.js';
import {
  BoundedProducers,
  type ByLane,
  coalescersOf,
  type EnqueueCoalescer,
  laneOf,
  LANES,
  producersOf,
} from './lanes.js';
import type { RepeatBroker } from './repeat-producer.js';

/** The part of a broker that takes tasks. */
export interface SenderBroker extends RepeatBroker, Pick<Broker, 'producer' | 'links' | 'manual' | 'clock'> {
  readonly groups: Pick<GroupsRole, 'listDelayedGroups'>;
}

/** Where sent tasks are reported. */
export interface SenderHooks {
  readonly events?: AsynqEvents | undefined;
  readonly tracing?: Tracing | undefined;
  /** Tasks enqueued in one of these wait for its commit. Default: none do. */
  readonly transactions?: EnqueueTransactions | undefined;
}

const NO_ROOMS: ReadonlyMap<string, ReadRoom> = new Map();

/** Sends prepared tasks: single ones of a tick together, those of a bulk as their batches fill up. */
export class Sender {
  private readonly flight = new Flight();
  private readonly producers: ByLane<Producing>;
  private readonly coalescers: ByLane<EnqueueCoalescer>;
  /** For tasks that are accepted already: they go in also when their queue is full. */
  private readonly heldCoalescers: ByLane<EnqueueCoalescer>;
  private readonly bounded: BoundedProducers | undefined;
  private readonly reminder: GroupReminder;
  private readonly held: HeldTasks | undefined;

  constructor(
    broker: SenderBroker,
    relay: Relay,
    private readonly hooks: SenderHooks,
    rooms: ReadonlyMap<string, ReadRoom> = NO_ROOMS,
  ) {
    const producers = producersOf(broker, relay, hooks.events);
    const clock = broker.manual ? new WaitingClock(broker.clock) : broker.clock;
    this.bounded = rooms.size === 0 ? undefined : new BoundedProducers(producers, rooms, clock);
    this.producers = this.bounded ?? producers;
    this.coalescers = coalescersOf(this.producers, this.flight);
    this.heldCoalescers = this.bounded ? coalescersOf(producers, this.flight) : this.coalescers;
    this.reminder = new GroupReminder(broker.groups, broker.clock);
    const { events, transactions } = hooks;
    this.held =
      transactions && new HeldTasks(transactions, { clock: broker.clock, events, send: (task) => this.sendHeld(task) });
  }

  /** Whether a transaction is around this call: what it enqueues waits for the commit. */
  get holds(): boolean {
    return this.hooks.transactions?.current?.() !== undefined;
  }

  /** `undefined`: no transaction is around this call. */
  holdOne(task: PreparedTask, span: EnqueueSpan | undefined): Promise<TaskInfo> | undefined {
    const scope = this.hooks.transactions?.current?.();
    return scope && this.held!.one(scope, task, span);
  }

  /** Sends one task, together with others of the same tick. Rejects when the call fails. */
  send(task: PreparedTask): Promise<EnqueueReply> {
    return this.coalescers[laneOf(task)].add(task.request.message.queue, task.request);
  }

  /**
   * One result per task, in order. In a transaction they are held; rejects only when its database cannot store them.
   *
   * @param prepare prepares one of them; an error thrown is its result
   * @param queue of all of them, for the trace; `undefined`: each has its own
   * @param infos `false`: results without infos
   */
  sendMany({ count, prepare, queue, infos }: PreparedCall): Promise<EnqueueOutcome[]> {
    const { events, tracing } = this.hooks;
    const span = tracing?.startEnqueueMany(count, queue);
    const scope = this.hooks.transactions?.current?.();
    const toResult = infos ? (result: EnqueueResult): EnqueueOutcome => result : outcomeOf;
    const bulk = new Bulk(
      this.producers,
      CALL_LIMITS,
      count,
      {
        prepare: (index) => {
          const task = injected(prepare(index), span);
          this.remind(task);
          return task;
        },
        beforeSend: (lane, queue) => this.coalescers[lane].flush(queue), // single calls made before this one go first
        resultOf: (task, status) => toResult(resultOf(task, status, events)),
      },
      this.flight,
    );
    const held = scope && this.held!.many(scope, count, (index) => injected(prepare(index), span));
    const run = held ? held.then((results) => results.map(toResult)) : bulk.run();
    if (!span) return run;
    void run.then(
      (results) => endSpan(span, results),
      (error: unknown) => span.end(error, count),
    );
    return run;
  }

  /** Sees to it that the group of a delayed task is listed when the task joins it. */
  remind({ request: { message, processAt } }: PreparedTask): void {
    if (processAt !== undefined && message.groupKey !== '') this.reminder.note(message.queue, processAt);
  }

  /** Sends what is collected, and resolves when every single task has its reply. Never rejects. */
  async close(): Promise<void> {
    await this.held?.close();
    this.reminder.close();
    await Promise.allSettled(
      LANES.flatMap((lane) => [this.coalescers[lane].close(), this.heldCoalescers[lane].close()]),
    );
    await this.bounded?.close();
  }

  private sendHeld(task: PreparedTask): Promise<EnqueueReply> {
    this.remind(task);
    return this.heldCoalescers[laneOf(task)].add(task.request.message.queue, task.request);
  }
}

function endSpan(span: EnqueueSpan, results: readonly EnqueueOutcome[]): void {
  const failures = results.filter(({ ok }) => !ok);
  span.end(failures[0]?.error, failures.length);
}
