import type { Broker } from '../broker/broker.js';
import type { AsynqEvents } from '../events/events.js';
import type { Tracing } from '../tracing/tracing.js';
import type { ActiveTask } from './attempt/active-task.js';
import { Dispatcher } from './fetching/dispatcher.js';
import type { QueueState } from './fetching/queue-state.js';
import { QueueRegistry } from './fetching/queue-registry.js';
import { LeaseKeeper } from './loops/lease-keeper.js';
import type { Limiter } from './attempt/limiter.js';
import { Limiters } from './attempt/limiters.js';
import type { Mux } from './attempt/mux.js';
import type { ResolvedServerOptions } from './options.js';
import { Processor } from './fetching/processor.js';
import { Runner } from './attempt/runner.js';
import { Syncer } from './fetching/syncer.js';
import { Verdicts } from './attempt/verdict.js';
import { LeaseExpiredError } from '../errors.js';

export interface CoreDeps {
  readonly broker: Broker;
  readonly mux: Mux;
  readonly options: ResolvedServerOptions;
  readonly events: AsynqEvents;
  readonly tracing: Tracing | undefined;
  readonly encodeResult: (result: unknown) => Buffer | undefined;
}

/** What the core tells the loops around it. */
export interface CoreListener {
  onAnswer(queue: QueueState, asked: number, got: number): void;
  onRound(): void;
  /** A queue did not answer; the syncer has taken it over and must run. */
  onFailure(): void;
  onLimiterError(error: unknown): void;
}

export interface Core {
  readonly queues: QueueRegistry;
  readonly runner: Runner;
  readonly verdicts: Verdicts;
  readonly dispatcher: Dispatcher;
  readonly processor: Processor;
  readonly leases: LeaseKeeper;
  readonly limiters: Limiters;
  readonly syncer: Syncer;
}

/** Wires the way of a task: taken, run, judged, settled; and what keeps its lease until then. */
export function buildCore(deps: CoreDeps, listener: CoreListener): Core {
  const { broker, mux, options, events, tracing, encodeResult } = deps;
  const { clock } = broker;
  const queues = new QueueRegistry(options.queues);
  const verdicts = new Verdicts({ ...options, clock, events, encodeResult });
  const runner: Runner = new Runner({
    clock,
    events,
    tracing,
    mux,
    verdicts,
    held: () => queues.held(),
    limiterOf: (entry) => limiters.of(entry),
    onVerdict: (task) => processor.finished(task),
    onSlotFree: (task) => {
      if (limiters.size > 0) limiterOf(task)?.left(task);
      queues.get(task.queue)?.lingering.delete(task);
      processor.pump();
    },
  });
  // A broker driven by hand runs one task after the other, and has no time to wait for a limit.
  const limiters: Limiters = new Limiters(broker.manual ? [] : mux.entries(), {
    broker,
    clock,
    queues: () => queues.names(),
    admit: (task) => runner.admit(task),
    defer: (task, waitlist) => runner.defer(task, waitlist),
    onWoken: (queue) => processor.pollQueue(queue),
    onError: (error) => listener.onLimiterError(error),
  });
  const limiterOf = (task: ActiveTask): Limiter | undefined => {
    const entry = mux.find(task.type);
    return entry && limiters.of(entry);
  };
  const onWaiting = (task: ActiveTask): void => limiterOf(task)?.queued(task.queue);
  const dispatcher = new Dispatcher({ broker, clock, events, queues, runner, verdicts, encodeResult, onWaiting });
  const processor: Processor = new Processor({
    broker,
    clock,
    events,
    queues,
    runner,
    dispatcher,
    strictPriority: options.strictPriority,
    concurrency: options.concurrency,
    onAnswer: (queue, asked, got) => listener.onAnswer(queue, asked, got),
    onRound: () => listener.onRound(),
    onFailure: (queue, error) => {
      if (syncer.failed(queue, error)) listener.onFailure();
    },
  });
  const leases = new LeaseKeeper({
    broker,
    clock,
    queues,
    onLost: (task) => dispatcher.lost(task),
    onExpired: (task) => runner.fail(task, new LeaseExpiredError()),
  });
  const syncer: Syncer = new Syncer({
    events,
    queues,
    extendLeases: (queue) => leases.extend(queue, true),
    settle: (queue) => processor.probe(queue),
    onReachable: () => processor.pump(),
  });
  return { queues, runner, verdicts, dispatcher, processor, leases, limiters, syncer };
}
