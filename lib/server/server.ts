import { finishesWithin } from '../async.js';
import type { StepCallPreparer } from '../broker/checkpoints.js';
import type { Broker, StoredResult } from '../broker/broker.js';
import { InvalidOptionError } from '../errors.js';
import { AsynqEvents, type TaskOutcome } from '../events/events.js';
import { Relay } from '../links/relay.js';
import type { TaskContexts } from '../task/contexts.js';
import type { Tracing } from '../tracing/tracing.js';
import type { TaskHandlerEntry } from './attempt/handler.js';
import { ByHand } from './by-hand.js';
import { Core } from './core.js';
import { onSignal } from './drain-signal.js';
import type { QueueOptions } from './fetching/queue-options.js';
import type { TaskAggregatorEntry } from './groups/aggregators.js';
import { checkConcurrency, checkQueue, resolveServerOptions, type ServerOptions } from './options.js';
import { statsOf, type ServerStats } from './server-stats.js';
import { requireActive, requireNew, type ServerStatus } from './server-status.js';
import { drain, shutDown } from './shutdown.js';

export interface ServerDeps {
  readonly broker: Broker;
  /** Carries messages between linked tasks. Default: one of its own. */
  readonly relay?: Relay;
  readonly handlers: Iterable<TaskHandlerEntry>;
  /** Functions that make one task of a group. Default: none, groups are left to other servers. */
  readonly aggregators?: Iterable<TaskAggregatorEntry>;
  readonly options?: ServerOptions;
  readonly events?: AsynqEvents;
  readonly tracing?: Tracing | undefined;
  /** What tasks see of their batch. Default: nothing. */
  readonly contexts?: (TaskContexts & StepCallPreparer) | undefined;
  /**
   * Turns what a handler returned into its result. Default: bytes as they are, anything else as JSON.
   */
  readonly encodeResult?: (result: unknown) => StoredResult | undefined;
}

/** Runs the tasks of some queues. It never closes the broker. */
export class Server {
  readonly events: AsynqEvents;
  /** Drives a server that was not started. */
  readonly byHand: ByHand;
  private readonly core: Core;
  private readonly drainSignal: NodeJS.Signals | undefined;
  /** A running server keeps the process alive, with or without sockets. */
  private keepAlive: NodeJS.Timeout | undefined;
  private offSignal = (): void => undefined;
  private draining: Promise<void> | undefined;
  private drained = false;
  private closing: Promise<void> | undefined;
  private resolveClosed = (): void => undefined;
  /** Resolves after the shutdown, even if handlers go on. */
  private readonly closed = new Promise<void>((resolve) => (this.resolveClosed = resolve));

  /** @throws InvalidOptionError, InvalidHandlerError */
  constructor({
    broker,
    relay,
    handlers,
    aggregators = [],
    options,
    events,
    tracing,
    contexts,
    encodeResult,
  }: ServerDeps) {
    this.events = events ?? new AsynqEvents();
    const resolved = resolveServerOptions(options);
    this.drainSignal = resolved.drainSignal;
    this.core = new Core({
      broker,
      relay: relay ?? new Relay(broker.links, this.events),
      handlers,
      aggregators,
      options: resolved,
      events: this.events,
      tracing,
      contexts,
      encodeResult,
    });
    this.byHand = new ByHand(this.core);
    if (broker.manual) this.byHand.listen();
  }

  get status(): ServerStatus {
    return this.core.status;
  }

  /** Tasks whose handlers have not settled. */
  get active(): number {
    return this.core.executor.running;
  }

  /** For metrics and health checks. */
  stats(): ServerStats {
    return statsOf(this.core);
  }

  /** The pattern of the handler for tasks of this type; `undefined` when there is none. */
  patternOf(type: string): string | undefined {
    return this.core.mux.find(type)?.pattern;
  }

  /**
   * Starts fetching and every loop. Redis need not be there yet. A server that only aggregates
   * groups fetches nothing.
   *
   * @throws ServerStateError with asynq's texts
   */
  async start(): Promise<void> {
    const { core } = this;
    requireNew(core.status, core.mux.size + core.aggregators.size);
    core.status = 'active';
    this.keepAlive = setInterval(() => {}, 2 ** 30);
    this.offSignal = onSignal(this.drainSignal, () => void this.drain());
    core.loopWatch.start();
    core.loops.start();
    core.startFetching();
    this.events.emit('serverStarted', { concurrency: core.concurrency, queues: core.queues.priorities() });
  }

  /** Stops fetching for good; running tasks and all other loops go on until `shutdown`. */
  stop(): void {
    if (this.status !== 'active') return;
    this.core.status = 'stopped';
    this.core.processor.stopFetching();
    this.core.loops.seatChanged(); // others have the next tasks
    this.core.loops.publish();
    this.events.emit('serverStopped', { active: this.active });
  }

  /**
   * Stops for good and waits until nothing runs here; `false` when the timeout or a shutdown comes
   * before. Nothing is interrupted: that is `shutdown`, which is quick after this. Idempotent,
   * never rejects. A server that was not started has nothing to drain.
   *
   * @param timeout milliseconds; default: as long as it takes
   */
  async drain(timeout = Infinity): Promise<boolean> {
    if (this.status === 'new') return true;
    this.stop();
    this.draining ??= this.waitForTasks();
    await finishesWithin(Promise.race([this.draining, this.closed]), timeout, this.core.deps.broker.clock);
    return this.drained;
  }

  /**
   * Stops fetching, lets running tasks end for up to `shutdownTimeout`, asks the rest to stop,
   * waits for them a little, puts what is left back at the front of its queue, and withdraws from
   * the list of servers. Idempotent, never rejects.
   */
  shutdown(): Promise<void> {
    this.closing ??= this.status === 'new' ? this.closeNew() : this.close();
    return this.closing;
  }

  /** Claims no new tasks until `resumeFetching`; what runs goes on. */
  pauseFetching(): void {
    requireActive(this.status, 'pause fetching');
    this.core.processor.stopFetching();
    this.core.loops.seatChanged();
  }

  resumeFetching(): void {
    requireActive(this.status, 'resume fetching');
    this.core.startFetching();
    this.core.loops.seatChanged();
  }

  /** Serves one more queue, or changes the options of one. @throws InvalidOptionError */
  addQueue(name: string, options: number | QueueOptions = 1): void {
    this.core.queues.add(name, checkQueue(name, options));
    this.core.loops.queuesChanged();
    this.core.processor.pollAll();
  }

  /**
   * Stops serving a queue; its running tasks end normally.
   *
   * @throws InvalidOptionError when it is not served
   */
  removeQueue(name: string): void {
    if (!this.core.queues.remove(name)) {
      const served = this.queues.join(', ') || 'none';
      throw new InvalidOptionError(`cannot remove queue "${name}": this server does not serve it; it serves ${served}`);
    }
    this.core.loops.seatChanged();
    this.core.loops.publish();
  }

  /**
   * Changes how many handlers run at the same time; running ones are never interrupted.
   *
   * @throws InvalidOptionError
   */
  setConcurrency(concurrency: number): void {
    this.core.processor.concurrency = checkConcurrency(concurrency);
    this.core.workAvailable();
    this.core.loops.publish();
  }

  /**
   * One pass by hand, for a server that was not started: claims up to `concurrency` tasks, runs and
   * settles them.
   */
  runOnce(): Promise<TaskOutcome[]> {
    return this.byHand.runOnce();
  }

  /** The queues it claims tasks of. */
  get queues(): readonly string[] {
    return this.core.queues.names();
  }

  private async waitForTasks(): Promise<void> {
    await drain(this.core);
    this.drained = true;
    if (this.status === 'stopped') this.events.emit('serverDrained', {});
  }

  private closeNew(): Promise<void> {
    this.core.status = 'closed';
    return this.core.loopWatch.stop().then(() => this.core.source.close());
  }

  private async close(): Promise<void> {
    this.stop();
    this.core.status = 'closed';
    const requeued = await shutDown(this.core);
    clearInterval(this.keepAlive);
    this.offSignal();
    this.resolveClosed();
    this.events.emit('serverClosed', { requeued });
  }
}
