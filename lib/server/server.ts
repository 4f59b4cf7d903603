import { finishesWithin } from '../async.js';
import type { Broker, LeasedTask, WakeSource } from '../broker/broker.js';
import { InvalidOptionError, ServerStateError, ShutdownError } from '../errors.js';
import { AsynqEvents, type TaskOutcome } from '../events/events.js';
import { jsonCodec } from '../task/codec.js';
import { requirePayloadSize } from '../task/payload-size.js';
import type { Tracing } from '../tracing/tracing.js';
import type { ServerInfo } from '../wire/message.js';
import type { ActiveTask } from './attempt/active-task.js';
import { Aggregator } from './groups/aggregator.js';
import { Aggregators, type TaskAggregatorEntry } from './groups/aggregators.js';
import { buildCore, type Core } from './core.js';
import type { ServerStats } from './server-stats.js';
import { onSignal } from './drain-signal.js';
import { Forwarder } from './loops/forwarder.js';
import type { TaskHandlerEntry } from './attempt/handler.js';
import type { Grouping } from './groups/grouping.js';
import { Heartbeater } from './loops/heartbeater.js';
import { Mux } from './attempt/mux.js';
import {
  checkConcurrency,
  checkQueue,
  resolveServerOptions,
  type ResolvedServerOptions,
  type ServerOptions,
} from './options.js';
import type { QueueOptions } from './fetching/queue-options.js';
import { ServerLoops } from './server-loops.js';
import { Waker } from './fetching/waker.js';

export type ServerStatus = 'new' | 'active' | 'stopped' | 'closed';

export interface ServerDeps {
  readonly broker: Broker;
  readonly handlers: Iterable<TaskHandlerEntry>;
  /** Functions that make one task of a group. Default: none, groups are left to other servers. */
  readonly aggregators?: Iterable<TaskAggregatorEntry>;
  readonly options?: ServerOptions;
  readonly events?: AsynqEvents;
  readonly tracing?: Tracing | undefined;
  /** Turns what a handler returned into the bytes of its result. Default: bytes as they are, anything else as JSON. */
  readonly encodeResult?: (result: unknown) => Buffer | undefined;
}

/** Milliseconds handlers have, once told to stop, before their tasks go back to the queue without them. */
const ABORT_GRACE = 2_000;
/** Milliseconds the last settlements may take at shutdown. */
const LAST_SETTLE = 2_000;
/** Milliseconds the loops may take to end and to withdraw: a Redis that hangs must not use up the time until SIGKILL. */
const LAST_WORDS = 5_000;

/** Runs the tasks of some queues. It never closes the broker. */
export class Server {
  readonly events: AsynqEvents;
  private state: ServerStatus = 'new';
  private readonly broker: Broker;
  private readonly options: ResolvedServerOptions;
  private readonly mux: Mux;
  private readonly core: Core;
  private readonly source: WakeSource;
  private readonly waker: Waker;
  private readonly grouping: Grouping;
  private readonly aggregator: Aggregator;
  private readonly loops: ServerLoops;
  private closing: Promise<void> | undefined;
  /** A running server keeps the process alive, with or without sockets. */
  private keepAlive: NodeJS.Timeout | undefined;
  private draining: Promise<void> | undefined;
  private quiet = false;
  private end = (): void => undefined;
  /** Resolves when it is shut down, with or without handlers that go on. */
  private readonly ended = new Promise<void>((resolve) => (this.end = resolve));
  private offSignal = (): void => undefined;

  /** @throws InvalidOptionError, InvalidHandlerError */
  constructor(deps: ServerDeps) {
    this.broker = deps.broker;
    this.events = deps.events ?? new AsynqEvents();
    this.options = resolveServerOptions(deps.options);
    this.mux = new Mux(deps.handlers);
    const aggregators = new Aggregators(deps.aggregators ?? []);
    this.core = this.wireCore(deps.encodeResult ?? encodeJsonResult, deps.tracing);
    this.source = this.broker.watch({
      onPending: (queue) => this.waker.onPending(queue),
      onDelayed: () => this.loops.delayedChanged(),
      onLost: () => this.waker.onLost(),
    });
    this.waker = this.makeWaker();
    this.grouping = this.makeGrouping(aggregators, deps.tracing);
    this.aggregator = new Aggregator({ ...this.grouping, onFree: () => this.loops.aggregateMore() });
    this.loops = this.makeLoops();
  }

  get status(): ServerStatus {
    return this.state;
  }

  /** Tasks whose handlers have not settled. */
  get active(): number {
    return this.core.runner.running;
  }

  /** For metrics and health checks. */
  stats(): ServerStats {
    const { processor, queues } = this.core;
    const inFlight = new Map([...queues.all()].map(({ name, held, lingering }) => [name, held.size + lingering.size]));
    const { state: status, active, waker, loops } = this;
    const { concurrency, free } = processor;
    return { status, concurrency, free, active, inFlight, wakeups: waker.wakeups, loops: loops.stats() };
  }

  /** The pattern of the handler for tasks of this type; `undefined` when there is none. */
  patternOf(type: string): string | undefined {
    return this.mux.find(type)?.pattern;
  }

  /**
   * Starts fetching and every loop. Redis need not be there yet. A server that only aggregates groups fetches nothing.
   *
   * @throws ServerStateError with asynq's texts
   */
  async start(): Promise<void> {
    if (this.state === 'active') throw new ServerStateError('asynq: the server is already running');
    if (this.state === 'stopped') {
      throw new ServerStateError('asynq: the server is in the stopped state. Waiting for shutdown.');
    }
    if (this.state === 'closed') throw new ServerStateError('asynq: Server closed');
    if (this.mux.size + this.grouping.aggregators.size === 0) {
      throw new ServerStateError('asynq: server cannot run with nil handler');
    }
    this.state = 'active';
    this.keepAlive = setInterval(() => {}, 2 ** 30);
    this.offSignal = onSignal(this.options.drainSignal, () => void this.drain());
    this.loops.start();
    this.startFetching();
    this.events.emit('serverStarted', {
      concurrency: this.core.processor.concurrency,
      queues: this.core.queues.priorities(),
    });
  }

  /** Stops fetching for good; running tasks and all other loops go on until `shutdown`. */
  stop(): void {
    if (this.state !== 'active') return;
    this.state = 'stopped';
    this.core.processor.stopFetching();
    this.loops.publish();
    this.events.emit('serverStopped', { active: this.active });
  }

  /**
   * Stops for good, and answers when nothing runs here any more; `false` when the timeout or a shutdown came before. Nothing is interrupted: that is
   * `shutdown`, which is quick after this. Idempotent, never rejects. A server that was not started has nothing to drain.
   *
   * @param timeout milliseconds; default: as long as it takes
   */
  async drain(timeout = Infinity): Promise<boolean> {
    if (this.state === 'new') return true;
    this.stop();
    this.draining ??= this.drained();
    await this.within(timeout, Promise.race([this.draining, this.ended]));
    return this.quiet;
  }

  /**
   * Stops fetching, lets running tasks end for up to `shutdownTimeout`, tells the rest to stop, waits for them a little, puts
   * what is left back at the front of its queue, and withdraws from the list of servers. Idempotent, never rejects.
   */
  shutdown(): Promise<void> {
    if (this.state === 'new') {
      this.state = 'closed';
      this.closing = this.source.close();
    }
    this.closing ??= this.shutdownInOrder();
    return this.closing;
  }

  /** Takes no new tasks until `resumeFetching`; what runs goes on. */
  pauseFetching(): void {
    this.requireActive('pause fetching');
    this.core.processor.stopFetching();
  }

  resumeFetching(): void {
    this.requireActive('resume fetching');
    this.startFetching();
  }

  /** Serves one more queue, or changes the options of one. @throws InvalidOptionError */
  addQueue(name: string, options: number | QueueOptions = 1): void {
    this.core.queues.add(name, checkQueue(name, options));
    this.loops.queuesChanged();
    this.core.processor.pollAll();
  }

  /** Stops serving a queue; its running tasks end normally. @throws InvalidOptionError when it is not served */
  removeQueue(name: string): void {
    if (!this.core.queues.remove(name)) {
      const served = this.core.queues.names().join(', ') || 'none';
      throw new InvalidOptionError(`cannot remove queue "${name}": this server does not serve it; it serves ${served}`);
    }
    this.loops.publish();
  }

  /** Changes how many handlers run at the same time; running ones are never interrupted. @throws InvalidOptionError */
  setConcurrency(concurrency: number): void {
    this.core.processor.concurrency = checkConcurrency(concurrency);
    this.core.processor.pump();
    this.loops.publish();
  }

  /**
   * One pass by hand, for a server that was not started: moves due tasks to their queues, makes tasks of due groups, takes up to `concurrency` of them,
   * runs and settles them.
   */
  async runOnce(): Promise<TaskOutcome[]> {
    return this.collect(async () => {
      await this.takeOnce();
      await this.core.processor.whenQuiet();
    });
  }

  /** The first half of `runOnce`: resolves when the handlers of what was taken have started. */
  async takeOnce(): Promise<void> {
    for (const queue of this.core.queues.names()) {
      await this.broker.forward(queue);
      await this.broker.reclaimStaleSets(queue);
    }
    await this.aggregator.runDue();
    await this.core.processor.takeOnce();
  }

  /** The second half of `runOnce`: resolves when no handler runs and every outcome is stored. */
  whenQuiet(): Promise<void> {
    return this.core.processor.whenQuiet();
  }

  /** The tasks whose handlers have not settled. */
  get running(): readonly ActiveTask[] {
    return [...this.core.queues.running()];
  }

  /** Whether every attempt that has ended is stored. */
  get isSettled(): boolean {
    return [...this.core.queues.all()].every(({ busy, held }) => !busy && ![...held].some(({ verdict }) => verdict));
  }

  /** The queues it takes tasks of. */
  get queues(): readonly string[] {
    return this.core.queues.names();
  }

  /** Whether it makes one task of the tasks of such a group. */
  aggregates(group: string): boolean {
    return this.grouping.aggregators.find(group) !== undefined;
  }

  /** When a group is due that this server aggregates, in milliseconds; `undefined` when none waits. */
  async nextGroupDue(): Promise<number | undefined> {
    const seconds = await this.aggregator.nextDue();
    return seconds === undefined ? undefined : seconds * 1000;
  }

  /** Runs one task, leased by the caller, through the whole pipeline. */
  async work(leased: LeasedTask): Promise<TaskOutcome> {
    const { queues, dispatcher, runner, processor } = this.core;
    const { queue: name } = leased.lease;
    const served = queues.get(name);
    const queue = served ?? queues.add(name, checkQueue(name, 1));
    const outcomes = await this.collect(async () => {
      runner.start(dispatcher.admit(queue, leased));
      await processor.whenQuiet();
    });
    if (!served) queues.remove(name);
    return outcomes.find(({ task }) => task.id === leased.lease.id)!;
  }

  private async collect(work: () => Promise<void>): Promise<TaskOutcome[]> {
    const outcomes: TaskOutcome[] = [];
    const off = this.events.on('taskFinished', (outcome) => outcomes.push(outcome));
    await work().finally(off);
    return outcomes;
  }

  private async drained(): Promise<void> {
    this.waker.stop(); // nothing is taken any more
    await this.loops.stopForwarding(); // what becomes due belongs to other servers now
    await Promise.all([this.core.processor.whenQuiet(), this.aggregator.whenQuiet()]);
    this.quiet = true;
    if (this.state === 'stopped') this.events.emit('serverDrained', {});
  }

  /** The order matters: each step needs what the later ones take away. */
  private async shutdownInOrder(): Promise<void> {
    let requeued = 0;
    const off = this.events.on('taskFinished', ({ outcome }) => outcome === 'requeued' && requeued++);
    this.stop();
    this.state = 'closed';
    const { processor, runner, verdicts, queues } = this.core;
    this.waker.stop(); // nothing is taken any more
    await this.loops.stopForwarding(); // what becomes due belongs to other servers now
    // Leases, cancellation and the syncer go on while tasks end and are settled.
    const quiet = Promise.all([processor.whenQuiet(), this.aggregator.whenQuiet()]);
    if (!(await this.within(this.options.shutdownTimeout, quiet))) {
      this.events.emit('shutdownTimedOut', { active: this.active, aggregating: this.aggregator.size });
      for (const task of [...queues.held()]) runner.interrupt(task, new ShutdownError());
      await this.within(ABORT_GRACE, processor.whenQuiet());
    }
    // Each goes to the front of its queue, so the one taken last goes first.
    for (const task of [...queues.held()].reverse()) {
      if (!task.verdict) runner.conclude(task, verdicts.requeue(task));
    }
    await this.within(LAST_SETTLE, processor.whenSettled());
    runner.close();
    await this.within(LAST_WORDS, this.loops.stop()); // clears the published state last, so that readers see the server until it is gone
    await this.source.close();
    clearInterval(this.keepAlive);
    this.offSignal();
    this.end();
    off();
    this.events.emit('serverClosed', { requeued });
  }

  /** Whether the promise resolved in time. */
  private within(milliseconds: number, promise: Promise<unknown>): Promise<boolean> {
    return finishesWithin(promise, milliseconds, this.broker.clock);
  }

  /** Without handlers every task it took would fail. */
  private startFetching(): void {
    if (this.mux.size > 0) this.core.processor.startFetching();
  }

  private requireActive(what: string): void {
    if (this.state === 'active') return;
    throw new ServerStateError(`cannot ${what}: the server is ${this.state}; it must be active`);
  }

  private wireCore(encodeResult: (result: unknown) => Buffer | undefined, tracing: Tracing | undefined): Core {
    const { broker, mux, options, events } = this;
    const encodeBounded = (result: unknown): Buffer | undefined =>
      requirePayloadSize(encodeResult(result), broker.maxPayloadSize, 'the result');
    return buildCore(
      { broker, mux, options, events, tracing, encodeResult: encodeBounded },
      {
        onAnswer: (queue, asked, got) => this.waker.answered(queue, asked, got),
        onRound: () => this.state === 'active' && this.waker.afterRound(),
        onFailure: () => this.loops.settleFailed(),
        onLimiterError: (error) => this.events.emit('loopFailed', { loop: 'limiter', error }),
      },
    );
  }

  private makeWaker(): Waker {
    const { processor, queues } = this.core;
    return new Waker({
      clock: this.broker.clock,
      events: this.events,
      queues,
      source: this.source,
      pollInterval: this.options.taskCheckInterval,
      pump: () => processor.pump(),
      poll: () => processor.pollAll(),
    });
  }

  private makeGrouping(aggregators: Aggregators, tracing: Tracing | undefined): Grouping {
    const { broker, events, core, options } = this;
    const { clock } = broker;
    return { broker, clock, events, tracing, queues: core.queues, aggregators, groups: options.groups };
  }

  private makeLoops(): ServerLoops {
    const { broker, events, options, mux, core, source, grouping, aggregator } = this;
    const { clock } = broker;
    const onError = (loop: string, error: unknown): void => events.emit('loopFailed', { loop, error });
    const heartbeater = new Heartbeater({
      broker,
      clock,
      queues: core.queues,
      strictPriority: options.strictPriority,
      concurrency: () => core.processor.concurrency,
      status: () => this.state as ServerInfo['status'],
    });
    const forwarder = new Forwarder({
      broker,
      source,
      clock,
      queues: core.queues,
      onError: (error) => onError('forwarder', error),
      interval: options.delayedTaskCheckInterval,
    });
    const deps = { broker, mux, events, options, core, heartbeater, forwarder, grouping, aggregator };
    return new ServerLoops({ ...deps, onError });
  }
}

function encodeJsonResult(result: unknown): Buffer | undefined {
  const bytes = jsonCodec.encode(result);
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
