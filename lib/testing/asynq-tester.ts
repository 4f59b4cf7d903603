import { setImmediate as nextTurn } from 'node:timers/promises';
import type { INestApplicationContext } from '@nestjs/common';
import { finishesWithin } from '../async.js';
import type { ManualClock } from '../clock.js';
import { parseDuration, type Duration } from '../duration.js';
import { TestingError } from '../errors.js';
import { ConnectionRegistry, type Connection } from '../nest/connection/connection.registry.js';
import { DEFAULT_CONNECTION } from '../nest/names/nest.constants.js';
import { ServerOrchestrator } from '../nest/lifecycle/server.orchestrator.js';
import { EventListeners } from '../nest/lifecycle/event.listeners.js';
import type { AnyTask, MissingPayload, PayloadArguments, PayloadFor, ResultFor } from '../client/types.js';
import type { TaskDefinition } from '../task/definition.js';
import type { TaskExplanation } from '../inspector/explain/reasons.js';
import { AsynqInspector } from '../inspector/inspector.js';
import type { TaskInfo } from '../task/info.js';
import { REAL_TIME } from './handler-watch.js';
import { InMemoryBroker } from './in-memory-broker.js';
import { leftTasks } from './left-tasks.js';
import { runAlone, type WorkOptions, type WorkOutcome } from './lone-task.js';
import { runUnnested } from './nested-run.js';
import type { LeftTasks, RunSummary } from './run-summary.js';
import { noHandlers, noInMemoryBroker, noModule, worksOn } from './testing.messages.js';
import type { TasksClass } from '../nest/calls/tasks-of.js';
import { handlerOf, type MethodName, type MethodPayload, type MethodResult, type TaskName } from './task-choice.js';
import { StepCrash } from './step-crash.js';
import { TaskLists } from './task-lists.js';
import { TestTransactions } from './test-transactions.js';
import { TestRun } from './test-run.js';

export interface RunOptions {
  /** The most attempts of a run; more count as an endless loop. Default 10,000. */
  limit?: number;
  /**
   * How long, in real time, a handler that uses its `signal` may work before it counts as waiting
   * for the signal, and the clock moves to its time-out. Other handlers that have not ended by then may
   * wait for more tasks, which start. Increase it for handlers that do slow real work. Default 100 ms. For `drainWhile` also how long its
   * work may go on while no task can run. Default of that 2 s.
   */
  patience?: Duration;
}

const DEFAULT_LIMIT = 10_000;
const DEFAULT_PATIENCE_MS = 100;
/** Between two runs of `drainWhile`, in real time. */
const IDLE_MS = 5;
/** How long the work of `drainWhile` may go on while no task can run, in real time. */
const DRAIN_WHILE_PATIENCE_MS = 2_000;

/**
 * Shows the tasks of an application under test and runs them as in production, through guards,
 * pipes, interceptors and filters, on an {@link InMemoryBroker}. Time passes only when the test
 * says so.
 *
 * @example
 * const tasks = AsynqTester.from(moduleRef);
 * expect(tasks.enqueued(WelcomeEmail)).toHaveLength(1);
 * await tasks.advance('10m');
 */
export class AsynqTester extends TaskLists {
  private readonly stepCrash: StepCrash;

  private constructor(
    private readonly connection: Connection,
    private readonly broker: InMemoryBroker,
    private readonly orchestrator: ServerOrchestrator,
    private readonly listeners: EventListeners,
  ) {
    super(broker, connection.name, TestTransactions.of(connection.transactions), connection.options.codec);
    this.stepCrash = new StepCrash(broker, (lease) => this.server().byHand.crash(lease));
    listeners.attach(connection); // also where the application is not initialized
  }

  /**
   * Works as soon as the module is compiled; `init()` is not needed (but without it no hooks of
   * Nest run).
   *
   * @param app a TestingModule, or an application made of one
   * @param connection the `name` of the AsynqModule, if it has one
   * @throws TestingError when the connection is not on an InMemoryBroker
   */
  static from(app: INestApplicationContext, connection = DEFAULT_CONNECTION): AsynqTester {
    const made = find(app, ConnectionRegistry).get(connection, 'AsynqTester.from');
    if (!(made.broker instanceof InMemoryBroker)) throw new TestingError(noInMemoryBroker(connection));
    made.options.transactions?.attach?.((token) => app.get(token, { strict: false })); // as the module does in onModuleInit
    return new AsynqTester(made, made.broker, find(app, ServerOrchestrator), find(app, EventListeners));
  }

  /** The clock of the application. */
  get clock(): ManualClock {
    return this.broker.clock;
  }

  /** Deletes all tasks, locks and counters. */
  clear(): void {
    this.broker.clear();
  }

  /**
   * A transaction around `work`, without a database: what `work` enqueues is in `uncommitted`. It is enqueued by the commit, when `work` has
   * succeeded, and dropped by the rollback, when it throws. Inside another one it is a savepoint.
   *
   * @returns what `work` returns
   * @throws what `work` throws
   */
  transaction<T>(work: () => T | Promise<T>): Promise<T> {
    return this.transactions.run(work);
  }

  /**
   * Runs tasks until none can run now, including those that running tasks enqueue, and aggregates
   * groups that are due. Time stands still: what is due later stays, retries and groups too. Tasks
   * that could run but do not are in `left` of the summary.
   *
   * @throws TestingError when there is no handler, no end, a handler waits for a time-out that does
   * not come,
   *   or a handler calls it
   */
  async drain(options: RunOptions = {}): Promise<RunSummary> {
    const summary = await this.drainOnce(options);
    await this.stepCrash.end();
    return summary;
  }

  /**
   * Lets time pass and runs each task when it is due: pending ones at once, delayed ones and
   * retries at their times, waiting ones when what they wait for has ended. Waits end at their time,
   * too. Periodic tasks are enqueued and groups aggregated when they are due. A
   * handler that waits for its time-out reaches it. Retained tasks are deleted when their retention
   * ends.
   *
   * @param time how long, as in `'10m'`
   * @throws TestingError as `drain` does
   */
  async advance(time: Duration, options: RunOptions = {}): Promise<RunSummary> {
    const end = this.clock.now() + Math.max(0, parseDuration(time, 'advance', TestingError));
    const scheduler = this.orchestrator.schedulerOf(this.connection);
    const summary = await this.collect('advance', options, async (run) => {
      await scheduler.runDue();
      await run.now();
      for (let due = await this.nextDue(run); due !== undefined && due <= end; due = await this.nextDue(run)) {
        await this.moveTo(due);
        await scheduler.runDue();
        await run.now();
      }
      await this.moveTo(end);
      await scheduler.runDue(); // publishes the entries: what was published at the last due time may have expired
      await run.toTheEnd();
    });
    await this.stepCrash.end();
    return summary;
  }

  /**
   * Runs tasks while `work` waits for their results, as a controller that calls `asynq.call` does: again and again, until `work` has settled.
   *
   * @example const reply = await tasks.drainWhile(() => request(app.getHttpServer()).get('/invoices/7'));
   * @returns what `work` returns
   * @throws what `work` throws, and as `drain` does; TestingError when `work` goes on for 2 s of real time (or `patience`) while tasks are
   * there and none can run
   */
  async drainWhile<T>(work: () => Promise<T>, options: RunOptions = {}): Promise<T> {
    let settled = false;
    const result = work().finally(() => (settled = true));
    result.catch(() => undefined); // it is awaited below, also when a run fails first
    const idlePasses = Math.ceil(
      parseDuration(options.patience ?? DRAIN_WHILE_PATIENCE_MS, 'patience', TestingError) / IDLE_MS,
    );
    for (let idle = 0; !settled;) {
      const { outcomes, left } = await this.drainOnce(options);
      idle = outcomes.length > 0 ? 0 : idle + 1;
      if (idle > idlePasses) this.refuseToIdle(left);
      await finishesWithin(
        result.catch(() => undefined),
        IDLE_MS,
        REAL_TIME,
      );
    }
    await result;
    await this.stepCrash.end();
    return result;
  }

  /** What the work waits for is not known: it may be one of the tasks that cannot run. */
  private refuseToIdle(left: readonly LeftTasks[]): void {
    const delayed = this.enqueued().filter(({ state }) => state === 'scheduled' || state === 'retry');
    if (left.length > 0 || delayed.length > 0) throw new TestingError(worksOn(left, delayed));
  }

  /**
   * Enqueues a task and runs it once, before all others, as in production: `work(WelcomeEmail, payload)`, or by its handler,
   * `work(EmailTasks, 'welcome', payload)`.
   *
   * @throws TestingError when it cannot run, or the class has no such handler
   */
  work<C extends object, M extends MethodName<C>>(
    tasks: TasksClass<C>,
    method: M,
    ...rest: PayloadArguments<MethodPayload<C, M>, WorkOptions>
  ): Promise<WorkOutcome<MethodResult<C, M>>>;
  work<R>(type: string, payload?: unknown, options?: WorkOptions): Promise<WorkOutcome<R>>;
  work<P>(task: TaskDefinition<P> & MissingPayload<P>): Promise<never>;
  work<T extends AnyTask>(
    task: T,
    ...rest: PayloadArguments<PayloadFor<T>, WorkOptions>
  ): Promise<WorkOutcome<ResultFor<T>>>;
  async work(first: TaskName | TasksClass, ...rest: unknown[]): Promise<WorkOutcome> {
    const { name } = this.connection;
    const task = typeof first === 'function' ? handlerOf(first, rest.shift() as string, name).task : first;
    const [payload, options] = rest as [unknown, WorkOptions | undefined];
    return this.unnested('work', () => this.workAlone(task, payload, options));
  }

  /**
   * Has the server of a task die as soon as a step of its handler is stored: once, in the next run. The attempt is lost, and the task is
   * retried as one that a server has recovered: `advance` to that. After `steps.call` the called task is there. Compensations have names, too:
   * `undo:capture`. The run fails with a TestingError when the step was not stored in it, also after a sleep or a wait: the call of the handler ends
   * with these, so that no crash can interrupt them.
   *
   * @example
   * tasks.crashAfter('capture');
   * expect(await tasks.advance('1h')).toMatchObject({ lost: 1, done: 1 }); // it was captured once
   *
   * @param step its name; `row#3` for the third of one name
   */
  crashAfter(step: string): void {
    this.stepCrash.arm(step);
  }

  /**
   * Why a task does not run, as `AsynqInspector.explain` says it of an application that runs with these handlers.
   *
   * @example expect((await tasks.explain(info)).reasons).toMatchObject([{ kind: 'handlerLimit' }]);
   */
  async explain(task: Pick<TaskInfo, 'queue' | 'id'>): Promise<TaskExplanation> {
    const { connection, orchestrator } = this;
    const work = (): Promise<TaskExplanation> => new AsynqInspector(this.broker).explain(task);
    const isWorker = orchestrator.handlersOf(connection).length + orchestrator.aggregatorsOf(connection).length > 0;
    return isWorker ? orchestrator.serverOf(connection).byHand.whilePublished(work) : work();
  }

  private async workAlone(task: TaskName, payload: unknown, options: WorkOptions = {}): Promise<WorkOutcome> {
    const server = this.server();
    const outcome = await runAlone(this.connection.client, this.broker, server.byHand, [task, payload, options]);
    await this.listeners.settle(this.connection);
    await this.stepCrash.end();
    return outcome;
  }

  private drainOnce(options: RunOptions): Promise<RunSummary> {
    return this.collect('drain', options, (run) => run.toTheEnd());
  }

  /** Deletes retained tasks up to then, so that their ids are free again. */
  private async moveTo(time: number): Promise<void> {
    this.clock.moveTo(time);
    for (const queue of await this.broker.inspection.queues())
      await this.broker.maintenance.deleteExpiredCompleted(queue, Infinity);
  }

  private server() {
    const { connection, orchestrator } = this;
    if (orchestrator.handlersOf(connection).length + orchestrator.aggregatorsOf(connection).length === 0) {
      throw new TestingError(noHandlers(this.connection.name));
    }
    return this.orchestrator.serverOf(this.connection);
  }

  private async collect(
    method: string,
    options: RunOptions,
    work: (run: TestRun) => Promise<void>,
  ): Promise<RunSummary> {
    const { connection, listeners } = this;
    const { limit = DEFAULT_LIMIT, patience = DEFAULT_PATIENCE_MS } = options;
    const server = this.server();
    const run = new TestRun(
      connection,
      server.byHand,
      listeners,
      limit,
      parseDuration(patience, 'patience', TestingError),
    );
    await this.unnested(method, () => work(run)).finally(() => run.end());
    run.summary.leave(leftTasks(this.broker, server));
    return run.summary;
  }

  /** Runs `work`, and afterwards makes those look who wait for the end of a workflow. */
  private async unnested<T>(method: string, work: () => Promise<T>): Promise<T> {
    try {
      return await runUnnested(this.broker, method, async () => {
        await nextTurn(); // what the test has called before, and does not wait for, is written now
        return work();
      });
    } finally {
      this.clock.advance(0);
    }
  }

  /**
   * When the next delayed task, retry, group, periodic task, time-out, or end of a wait after now is
   * due, in milliseconds.
   */
  private async nextDue(run: TestRun): Promise<number | undefined> {
    const now = this.clock.now();
    const { byHand, queues } = this.server();
    const times = this.broker.tasks().map(({ nextProcessAt = 0 }) => nextProcessAt * 1000);
    times.push((await byHand.nextGroupDue()) ?? 0, this.broker.nextReclaim() ?? 0);
    times.push(this.broker.nextTimer() ?? 0, run.nextDeadline() ?? 0, byHand.nextRoom() ?? 0);
    times.push(...queues.map((queue) => this.broker.nextStart(queue, byHand.rateOf(queue)) ?? 0));
    times.push(...queues.map((queue) => this.broker.nextTurn(queue) ?? 0));
    const later = [...times, this.connection.scheduler.nextDue()].filter((time) => time > now && time < Infinity);
    return later.length === 0 ? undefined : Math.min(...later);
  }
}

function find<T>(app: INestApplicationContext, token: new (...args: never[]) => T): T {
  try {
    return app.get<T>(token, { strict: false });
  } catch (error) {
    throw new TestingError(noModule, { cause: error });
  }
}
