import { infoOf } from '../enqueue/prepared-task.js';
import type { StoredTask } from '../broker/inspection.js';
import type { TasksClass } from '../nest/calls/tasks-of.js';
import { jsonCodec, type PayloadCodec } from '../task/codec.js';
import { type TaskInfo, toTaskInfo } from '../task/info.js';
import type { TaskState } from '../wire/states.js';
import type { InMemoryBroker } from './in-memory-broker.js';
import { type ChoiceArguments, type MethodName, type MethodPayload, readChoice, type TaskName } from './task-choice.js';
import { matchesFilter, type TaskFilter, type TestTask } from './task-filter.js';
import type { TestTransactions } from './test-transactions.js';
import { type WaitingTask, withWait } from './waiting-task.js';

const NOT_RUN: readonly TaskState[] = ['pending', 'scheduled', 'retry', 'aggregating', 'waiting', 'held'];

/** What a tester shows of the tasks of its connection. */
export abstract class TaskLists {
  constructor(
    private readonly stored: InMemoryBroker,
    private readonly connectionName: string,
    protected readonly transactions: TestTransactions,
    private readonly codec: PayloadCodec = jsonCodec,
  ) {}

  /**
   * Tasks that have not run yet: pending, scheduled, to be retried, in a group, waiting for other
   * tasks, or held by a limit; in the order of enqueueing. All of them, those of a type, or those of a handler:
   * `enqueued(EmailTasks, 'welcome')`.
   *
   * @throws TestingError when the class has no such handler, or it is for another connection
   */
  enqueued<P = unknown>(task?: TaskName<P>, filter?: TaskFilter<NoInfer<P>>): TestTask<P>[];
  enqueued<C extends object, M extends MethodName<C>>(
    tasks: TasksClass<C>,
    method: M,
    filter?: TaskFilter<MethodPayload<C, M>>,
  ): TestTask<MethodPayload<C, M>>[];
  enqueued(...choice: ChoiceArguments): TestTask[] {
    return this.find(choice).filter(({ state }) => NOT_RUN.includes(state));
  }

  /** Tasks that wait for other tasks, with what each waits for. */
  waiting<P = unknown>(task?: TaskName<P>, filter?: TaskFilter<NoInfer<P>>): WaitingTask<P>[];
  waiting<C extends object, M extends MethodName<C>>(
    tasks: TasksClass<C>,
    method: M,
    filter?: TaskFilter<MethodPayload<C, M>>,
  ): WaitingTask<MethodPayload<C, M>>[];
  waiting(...choice: ChoiceArguments): WaitingTask[] {
    return this.find(choice)
      .filter(({ state }) => state === 'waiting')
      .map((found) => withWait(found, this.stored.waitOf(found.queue, found.id)!));
  }

  /** Tasks that are archived. */
  archived<P = unknown>(task?: TaskName<P>, filter?: TaskFilter<NoInfer<P>>): TestTask<P>[];
  archived<C extends object, M extends MethodName<C>>(
    tasks: TasksClass<C>,
    method: M,
    filter?: TaskFilter<MethodPayload<C, M>>,
  ): TestTask<MethodPayload<C, M>>[];
  archived(...choice: ChoiceArguments): TestTask[] {
    return this.find(choice).filter(({ state }) => state === 'archived');
  }

  /** Tasks that succeeded and are retained. */
  completed<P = unknown>(task?: TaskName<P>, filter?: TaskFilter<NoInfer<P>>): TestTask<P>[];
  completed<C extends object, M extends MethodName<C>>(
    tasks: TasksClass<C>,
    method: M,
    filter?: TaskFilter<MethodPayload<C, M>>,
  ): TestTask<MethodPayload<C, M>>[];
  completed(...choice: ChoiceArguments): TestTask[] {
    return this.find(choice).filter(({ state }) => state === 'completed');
  }

  /**
   * Tasks that are enqueued in a transaction which has not committed, in the order of the calls: with their states after the commit.
   * Rows that an outbox has written are not among them.
   */
  uncommitted<P = unknown>(task?: TaskName<P>, filter?: TaskFilter<NoInfer<P>>): TestTask<P>[];
  uncommitted<C extends object, M extends MethodName<C>>(
    tasks: TasksClass<C>,
    method: M,
    filter?: TaskFilter<MethodPayload<C, M>>,
  ): TestTask<MethodPayload<C, M>>[];
  uncommitted(...choice: ChoiceArguments): TestTask[] {
    return this.choose(choice, this.transactions.tasks().map(infoOf));
  }

  /** All tasks, in any state. */
  all<P = unknown>(task?: TaskName<P>, filter?: TaskFilter<NoInfer<P>>): TestTask<P>[];
  all<C extends object, M extends MethodName<C>>(
    tasks: TasksClass<C>,
    method: M,
    filter?: TaskFilter<MethodPayload<C, M>>,
  ): TestTask<MethodPayload<C, M>>[];
  all(...choice: ChoiceArguments): TestTask[] {
    return this.find(choice);
  }

  private find(given: ChoiceArguments): TestTask[] {
    return this.choose(given, this.stored.tasks().map(infoOfStored));
  }

  private choose(given: ChoiceArguments, infos: readonly TaskInfo[]): TestTask[] {
    const { type, codec = this.codec, filter } = readChoice(given, this.connectionName);
    return infos
      .filter((info) => type === undefined || info.type === type)
      .map((info) => describe(info, codec))
      .filter((described) => matchesFilter(described, filter));
  }
}

function infoOfStored({ message, state, nextProcessAt, held, result, notes }: StoredTask): TaskInfo {
  const dueAt = nextProcessAt === undefined ? undefined : nextProcessAt * 1000;
  return toTaskInfo(message, { state, nextProcessAt: dueAt, held, result, notes });
}

function describe(info: TaskInfo, codec: PayloadCodec): TestTask {
  const { enqueuedAt, expiresAt } = info;
  return { ...info, enqueuedAt, expiresAt, payload: decode(codec, info.payload), rawPayload: info.payload };
}

function decode(codec: PayloadCodec, bytes: Buffer): unknown {
  try {
    return codec.decode(bytes);
  } catch {
    return bytes;
  }
}
