import { AcknowledgeTimeoutError, ClosedError, InvalidOptionError, InvalidTaskError } from '../errors.js';
import { Relay } from '../links/relay.js';
import type { StepCallPreparer } from '../broker/checkpoints.js';
import type { AsynqBatch } from '../batches/batch.js';
import type { BatchRef } from '../batches/batches.js';
import type { BatchOptions } from '../batches/options.js';
import { readAcknowledge } from '../task/acknowledge.js';
import type { TaskContexts } from '../task/contexts.js';
import type { JsonLoss } from '../task/json-loss.js';
import type { TaskDefinition } from '../task/definition.js';
import {
  type FollowOptions,
  readFollowOptions,
  readResultOptions,
  type ResultOptions,
  retentionFor,
} from '../results/options.js';
import { Results } from '../results/results.js';
import { followTask, type UpdateSink } from '../results/updates.js';
import type { TaskInfo } from '../task/info.js';
import type { Jsonify } from '../task/jsonify.js';
import type { SignalDefinition } from '../task/signal.js';
import { resolveQueueSettings, roomsOf } from '../task/queue-settings.js';
import { rejectUnknownKeys, requireMade, requireObject } from '../validation.js';
import type { StartOptions } from '../workflows/types.js';
import type { Workflow } from '../workflows/workflow.js';
import type { WorkflowRun } from '../workflows/workflow-run.js';
import type { StartResult, WorkflowItem } from '../workflows/workflows.js';
import { CallPreparer } from './call-preparer.js';
import type { AnyTask } from './item.js';
import { resultOf, type EnqueueOutcome, type EnqueueResult } from '../enqueue/enqueue-result.js';
import { injected, type PreparedTask } from '../enqueue/prepared-task.js';
import { Preparer } from '../enqueue/preparer.js';
import type { EnqueueReply } from '../enqueue/producing.js';
import type { AsynqClientOptions, ClientBroker, ClientHooks } from './client-options.js';
import { LinkedWork } from './linked-work.js';
import { Sender } from './sender.js';
import { sendSignal, type SignalArguments, type SignalDeps, type TaskKey } from './signal.js';
import { awaitedTask } from './task-place.js';
import type {
  DefinedItem,
  EnqueueManyOptions,
  EnqueueOptions,
  MissingPayload,
  NamedItem,
  PayloadArguments,
  PayloadFor,
  ResultCallOptions,
  ResultFor,
  TaskWithResult,
} from './types.js';

/**
 * Enqueues tasks. A task is stored when the promise resolves.
 *
 * Calls made in the same tick are sent together, in one round trip per queue: concurrent calls need
 * no batching.
 */
export class AsynqClient {
  private readonly calls: CallPreparer;
  private readonly relay: Relay;
  private readonly sender: Sender;
  /** What is under way besides single calls. */
  private readonly bulks = new Set<Promise<unknown>>();
  private readonly linked: LinkedWork;
  private readonly signalDeps: SignalDeps;
  /** Made when somebody waits for a result first. */
  private madeResults: Results | undefined;
  private closing: Promise<void> | undefined;

  /**
   * @param hooks where tasks are reported; the module passes those of its connection
   * @throws InvalidOptionError or InvalidTaskError when an option is invalid
   */
  constructor(
    private readonly broker: ClientBroker,
    options: AsynqClientOptions = {},
    private readonly hooks: ClientHooks = {},
  ) {
    requireMade(broker, 'AsynqClient');
    requireObject(options, 'client options', InvalidOptionError);
    rejectUnknownKeys(options, ['codec', 'defaults', 'queues', 'acknowledge'], 'client option', InvalidOptionError);
    const { events } = hooks;
    const onLoss = events && ((type: string, loss: JsonLoss) => events.emit('payloadChanged', { type, ...loss }));
    const notices = { onLoss, onQueue: hooks.onQueue };
    const preparer = new Preparer(broker.keyPrefix, options.codec, options.defaults, broker.maxPayloadSize, notices);
    const acknowledge = readAcknowledge(options.acknowledge ?? false, 'acknowledge of the client');
    this.calls = new CallPreparer(preparer, acknowledge, broker.clock);
    this.relay = hooks.relay ?? new Relay(broker.links, hooks.events);
    const queues = resolveQueueSettings(options.queues);
    for (const [queue, { isFair }] of queues) if (isFair) broker.fairQueues.add(queue);
    this.sender = new Sender(broker, this.relay, hooks, roomsOf(queues));
    this.signalDeps = { broker, preparer };
    this.linked = new LinkedWork({
      broker,
      preparer,
      relay: this.relay,
      events: hooks.events,
      tracing: hooks.tracing,
      requireOpen: () => this.requireOpen(),
      track: (work) => this.track(work),
    });
  }

  /**
   * Enqueues one task.
   *
   * @example
   * await asynq.enqueue(WelcomeEmail, { userId: 42 });
   * await asynq.enqueue('email:welcome', { userId: 42 }, { processIn: '10m', unique: '1h' });
   * await asynq.enqueue(Report, {}, { after: [info, { queue: 'default', id: 'export-7' }] });
   *
   * @param payload JSON data, bytes, or `undefined` for none
   * @throws InvalidTaskError before anything is written
   * @throws DuplicateTaskError when another task holds the unique lock
   * @throws TaskIdConflictError when the id is taken
   * @throws AcknowledgeTimeoutError when it is stored, but not where it was to be (`acknowledge`)
   * @throws QueueFullError when the queue has as many pending tasks as this client may fill it to
   * @throws PrerequisiteNotFoundError when it is to wait for a task that does not exist (`missing`)
   * @throws BrokerUnavailableError when Redis does not reply; the task may or may not be stored
   * @throws ClosedError after `close`
   */
  // Never chosen. It has the compiler say what is missing; one generic signature after it has it explain what is wrong.
  enqueue<P>(task: TaskDefinition<P> & MissingPayload<P>): Promise<never>;
  enqueue<T extends AnyTask>(
    task: T,
    ...rest: PayloadArguments<PayloadFor<T>, EnqueueOptions<PayloadFor<T>>>
  ): Promise<TaskInfo<ResultFor<T>>>;
  async enqueue(task: AnyTask, payload?: unknown, options?: EnqueueOptions<never>): Promise<TaskInfo> {
    this.requireOpen();
    return this.enqueuePrepared(this.calls.one(task, payload, options));
  }

  private async enqueuePrepared(prepared: PreparedTask): Promise<TaskInfo> {
    const { hooks } = this;
    const span = hooks.tracing?.startEnqueue(prepared.request.message);
    const sent = injected(prepared, span);
    const held = this.sender.holdOne(sent, span);
    if (held) return held;
    let status: EnqueueReply;
    try {
      status = await this.sender.send(sent);
    } catch (error) {
      span?.end(error);
      throw error;
    }
    const result = resultOf(sent, status, hooks.events, span);
    if (result.ok || result.error instanceof AcknowledgeTimeoutError) this.sender.remind(sent);
    if (!result.ok) throw result.error;
    return result.info;
  }

  /**
   * Enqueues a task and waits for its result: what the handler returns or writes, in whatever process, also of a Go server. The result is kept
   * for a minute at least, and for as long as the call waits.
   *
   * @example const { url } = await asynq.call(RenderInvoice, { orderId }, { timeout: '30s' });
   *
   * @param options as of `enqueue`, without a group; `timeout` is how long to wait (default 30 seconds), `signal` ends the wait
   * @throws as `enqueue`, then as `result`; InvalidTaskError in a transaction, whose commit enqueues the task
   */
  call<P, R>(task: TaskDefinition<P, R>, ...rest: PayloadArguments<P, ResultCallOptions<P>>): Promise<Jsonify<R>>;
  call<R = unknown>(type: string, payload?: unknown, options?: ResultCallOptions<unknown>): Promise<R>;
  async call(task: AnyTask, payload?: unknown, options: ResultCallOptions<never> = {}): Promise<unknown> {
    const { timeout, signal, ...others } = requireObject(
      options,
      'options of call',
      InvalidTaskError,
    ) as ResultCallOptions<never>;
    return this.callFor(task, payload, others, { timeout, signal });
  }

  /** @internal `call` with the options of the task, and how to wait. */
  async callFor(
    task: AnyTask,
    payload: unknown,
    options: EnqueueOptions<never>,
    wait: ResultOptions,
  ): Promise<unknown> {
    this.requireOpen();
    const settings = readResultOptions(wait, 'call');
    if (this.sender.holds) {
      throw new InvalidTaskError(
        'call in a transaction would wait for a task that is enqueued by the commit; enqueue it, and wait for its result after that',
      );
    }
    settings.signal?.throwIfAborted();
    const { results } = this;
    const since = results.clock.elapsed();
    const info = await this.enqueuePrepared(this.calls.kept(task, payload, options, retentionFor(settings.timeout)));
    const left = Math.max(0, settings.timeout - (results.clock.elapsed() - since));
    const awaited = { queue: info.queue, id: info.id, known: true, kept: info.created };
    return results.of(awaited, { ...settings, timeout: left }, settings.timeout);
  }

  /**
   * Waits for the result of a task that is there: what its handler returns or writes, in whatever process, also of a Go server. It needs a
   * retention, as results of other tasks are not kept.
   *
   * @example const result = await asynq.result(info, { timeout: '30s' });
   *
   * @param task the TaskInfo, or its queue and id
   * @throws TaskFailedError when the task is archived
   * @throws ResultNotKeptError when it is over, and nothing is kept of it
   * @throws TaskNotFoundError when there is no such task, or it is deleted
   * @throws ResultTimeoutError after `timeout` (default 30 seconds)
   * @throws InvalidTaskError when an option is invalid; ClosedError when the client is closed; the reason of `signal`
   */
  async result<R = unknown>(task: TaskWithResult<R>, options: ResultOptions = {}): Promise<Jsonify<R>> {
    this.requireOpen();
    const awaited = awaitedTask(task, 'task whose result is waited for');
    return (await this.results.of(awaited, readResultOptions(options, 'result'))) as Jsonify<R>;
  }

  /** @internal What happens to a task, for `follow`: to be called with a sink; returns what ends it. */
  updatesOf(task: TaskWithResult, options: FollowOptions): (sink: UpdateSink) => () => void {
    const awaited = awaitedTask(task, 'task to follow');
    const settings = readFollowOptions(options);
    return (sink) => {
      this.requireOpen();
      return followTask(this.results, this.broker.notes, awaited, settings, sink);
    };
  }

  /**
   * Enqueues many tasks, in batches. Returns one result per task, in order: a task that fails does
   * not affect the others. Tasks are read during the call; do not change them before it resolves.
   *
   * @example
   * const results = await asynq.enqueueMany(WelcomeEmail, users.map((user) => ({ userId: user.id })));
   * await asynq.enqueueMany([{ task: WelcomeEmail, payload: { userId: 42 } }, { type: 'cache:warm' }]);
   *
   * // Results say ok or have an error, and hold no payloads.
   * const results = await asynq.enqueueMany(ImportRow, rows, { infos: false });
   *
   * @throws InvalidTaskError when the task or the options of all payloads are invalid; nothing is
   * written
   * @throws ClosedError after `close`
   */
  enqueueMany<T extends readonly unknown[]>(
    items: { [K in keyof T]: DefinedItem<T[K]> | NamedItem },
    options: { infos: false },
  ): Promise<EnqueueOutcome[]>;
  enqueueMany<T extends readonly unknown[]>(
    items: { [K in keyof T]: DefinedItem<T[K]> | NamedItem },
    options?: EnqueueManyOptions<true>,
  ): Promise<EnqueueResult[]>;
  enqueueMany<T extends AnyTask>(
    task: T,
    payloads: readonly NoInfer<PayloadFor<T>>[],
    options: EnqueueOptions<NoInfer<PayloadFor<T>>> & { infos: false },
  ): Promise<EnqueueOutcome[]>;
  enqueueMany<T extends AnyTask>(
    task: T,
    payloads: readonly NoInfer<PayloadFor<T>>[],
    options?: EnqueueOptions<NoInfer<PayloadFor<T>>> & EnqueueManyOptions<true>,
  ): Promise<EnqueueResult[]>;
  async enqueueMany(
    first: unknown,
    second?: unknown,
    third?: EnqueueOptions<never> & EnqueueManyOptions,
  ): Promise<EnqueueOutcome[]> {
    this.requireOpen();
    return this.track(this.sender.sendMany(this.calls.many(first, second, third)));
  }

  /**
   * Opens a batch: many tasks with one end. Add its members, then close it.
   *
   * @example
   * const batch = await asynq.openBatch({ name: 'import 42', onSuccess: [ImportDone, { id: 42 }] });
   * await batch.add(ImportRow, rows);
   * await batch.close();
   *
   * @throws InvalidTaskError before anything is written
   * @throws BrokerUnavailableError when Redis does not reply
   * @throws ClosedError after `close`
   */
  openBatch<S extends AnyTask, C extends AnyTask, D extends AnyTask>(
    options: BatchOptions<S, C, D>,
  ): Promise<AsynqBatch> {
    return this.linked.batches.open(options as BatchOptions);
  }

  /**
   * A handle of a batch that any process has opened. Does not ask whether it exists.
   *
   * @throws InvalidTaskError when the reference is invalid
   */
  batch(ref: BatchRef): AsynqBatch {
    return this.linked.batches.of(ref);
  }

  /**
   * Starts a run of a workflow: all of it or nothing, however many queues it touches. Starts of the
   * same tick to one queue are sent together.
   *
   * @example
   * const run = await asynq.start(fulfil(orderId), { id: orderId });
   * const { state, steps } = await run.done({ timeout: '1m' });
   *
   * @returns the run; the one that exists, with `created: false`, when the workflow has one of this id
   * @throws InvalidWorkflowError or InvalidTaskError before anything is written
   * @throws BrokerUnavailableError when Redis does not reply; the run may or may not be started: start
   * it again with the same id
   * @throws ClosedError after `close`
   */
  async start<Steps extends object>(
    workflow: Workflow<Steps>,
    options: StartOptions = {},
  ): Promise<WorkflowRun<Steps>> {
    this.requireOpen();
    return this.linked.workflows.start(workflow, options);
  }

  /**
   * Starts many runs. Returns one result per workflow, in order: one that fails does not affect the
   * others.
   *
   * @example
   * const results = await asynq.startMany(orders.map(({ id }) => ({ workflow: fulfil(id), id })));
   *
   * @throws ClosedError after `close`
   */
  async startMany<T extends readonly object[]>(workflows: { [K in keyof T]: WorkflowItem<T[K]> }): Promise<{
    -readonly [K in keyof T]: StartResult<T[K]>;
  }> {
    this.requireOpen();
    const results: unknown = await this.linked.workflows.startMany(workflows as readonly WorkflowItem[]);
    return results as { -readonly [K in keyof T]: StartResult<T[K]> };
  }

  /**
   * A handle of a run that was started before, by any process. Reads nothing: its methods reject with
   * WorkflowNotFoundError when there is no such run.
   *
   * @param workflow with a name alone, the types of results are unknown
   * @param id the id that was given to `start`
   * @param options `queue` that keeps the run. Default: as for `start`; for a name, the default queue
   * @throws InvalidWorkflowError when the name, the id or the queue is invalid
   */
  run<Steps extends object>(workflow: Workflow<Steps>, id: string, options?: { queue?: string }): WorkflowRun<Steps>;
  run(name: string, id: string, options?: { queue?: string }): WorkflowRun;
  run(workflow: Workflow | string, id: string, options?: { queue?: string }): WorkflowRun<object> {
    this.requireOpen();
    return this.linked.workflows.find(workflow, id, options);
  }

  /**
   * Sends a signal to the handler of a task, which waits for it with `steps.waitFor`, or will. It is kept with the task until then.
   *
   * @example
   * await asynq.signal(info, Approval, { by: 'anna' });
   * await asynq.signal(FulfilOrder, { key: orderId }, Approval, { by: 'anna' });
   *
   * @param task the TaskInfo, or its queue and id; or its definition and its key, when that has once, debounce, throttle, latest, supersede
   * or `unique: { for, by: 'key' }`
   * @throws TaskNotFoundError when there is no such task (any more)
   * @throws TaskStateError when the task has succeeded or is archived, or has too many signals of this name
   * @throws InvalidTaskError when the payload cannot be encoded, or tasks of the definition cannot be found by their keys
   * @throws ClosedError after `close`
   */
  signal<P>(
    task: { readonly queue: string; readonly id: string },
    signal: SignalDefinition<P>,
    ...payload: undefined extends P ? [payload?: P] : [payload: P]
  ): Promise<void>;
  signal<P>(
    task: Pick<TaskDefinition<never>, 'type' | 'options'>,
    key: TaskKey,
    signal: SignalDefinition<P>,
    ...payload: undefined extends P ? [payload?: P] : [payload: P]
  ): Promise<void>;
  async signal(...args: SignalArguments): Promise<void> {
    this.requireOpen();
    return this.track(sendSignal(this.signalDeps, args));
  }

  /**
   * Refuses further calls, and resolves when those under way are done, and the parcels that they
   * caused are delivered, if the relay is its own. Does not close the broker. Idempotent.
   */
  close(): Promise<void> {
    this.closing ??= this.settle();
    return this.closing;
  }

  /** What tasks of a server in this process see of their batch and their run: for ServerDeps. */
  get taskContexts(): TaskContexts & StepCallPreparer {
    return this.linked;
  }

  private get results(): Results {
    return (this.madeResults ??= new Results(this.broker, this.hooks.events));
  }

  private track<T>(work: Promise<T>): Promise<T> {
    this.bulks.add(work);
    return work.finally(() => this.bulks.delete(work));
  }

  private async settle(): Promise<void> {
    await this.madeResults?.close();
    this.linked.closeBatches();
    await Promise.allSettled([...this.bulks, this.sender.close(), this.linked.closeWorkflows()]);
    if (!this.hooks.relay) await this.relay.close();
  }

  private requireOpen(): void {
    if (this.closing) throw new ClosedError('the client is closed; enqueue before the application shuts down');
  }
}
