import type { Broker } from '../broker/broker.js';
import type { AsynqEvents } from '../events/events.js';
import type { Tracing } from '../tracing/tracing.js';
import type { ActiveTask } from './active-task.js';
import { Intake } from './intake.js';
import type { Lane } from './lane.js';
import { Lanes } from './lanes.js';
import { LeaseKeeper } from './lease-keeper.js';
import type { Limiter } from './limiter.js';
import { Limiters } from './limiters.js';
import type { Mux } from './mux.js';
import type { ResolvedServerOptions } from './options.js';
import { Processor } from './processor.js';
import { Runner } from './runner.js';
import { Syncer } from './syncer.js';
import { Verdicts } from './verdict.js';
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
  onAnswer(lane: Lane, asked: number, got: number): void;
  onRound(): void;
  /** A queue did not answer; the syncer has taken it over and must run. */
  onFailure(): void;
  onLimiterError(error: unknown): void;
}

export interface Core {
  readonly lanes: Lanes;
  readonly runner: Runner;
  readonly verdicts: Verdicts;
  readonly intake: Intake;
  readonly processor: Processor;
  readonly leases: LeaseKeeper;
  readonly limiters: Limiters;
  readonly syncer: Syncer;
}

/** Wires the way of a task: taken, run, judged, settled; and what keeps its lease until then. */
export function buildCore(deps: CoreDeps, listener: CoreListener): Core {
  const { broker, mux, options, events, tracing, encodeResult } = deps;
  const { clock } = broker;
  const lanes = new Lanes(options.queues);
  const verdicts = new Verdicts({ ...options, clock, events, encodeResult });
  const runner: Runner = new Runner({
    clock,
    events,
    tracing,
    mux,
    verdicts,
    held: () => lanes.held(),
    limiterOf: (entry) => limiters.of(entry),
    onVerdict: (task) => processor.finished(task),
    onSlotFree: (task) => {
      if (limiters.size > 0) limiterOf(task)?.left(task);
      lanes.get(task.queue)?.lingering.delete(task);
      processor.pump();
    },
  });
  // With a broker driven by hand there is no time to wait for a limit, of a handler or (see `keepsLimits`) of a queue.
  const limiters: Limiters = new Limiters(broker.manual ? [] : mux.entries(), {
    broker,
    clock,
    queues: () => lanes.queues(),
    letIn: (task) => runner.letIn(task),
    turnAway: (task, line) => runner.turnAway(task, line),
    onWoken: (queue) => processor.lookInto(queue),
    onError: (error) => listener.onLimiterError(error),
  });
  const limiterOf = (task: ActiveTask): Limiter | undefined => {
    const entry = mux.find(task.type);
    return entry && limiters.of(entry);
  };
  const onWaiting = (task: ActiveTask): void => limiterOf(task)?.queued(task.queue);
  const intake = new Intake({ broker, clock, events, lanes, runner, verdicts, encodeResult, onWaiting });
  const processor: Processor = new Processor({
    broker,
    clock,
    events,
    lanes,
    runner,
    intake,
    strictPriority: options.strictPriority,
    concurrency: options.concurrency,
    keepsLimits: !broker.manual,
    onAnswer: (lane, asked, got) => listener.onAnswer(lane, asked, got),
    onRound: () => listener.onRound(),
    onFailure: (lane, error) => {
      if (syncer.failed(lane, error)) listener.onFailure();
    },
  });
  const leases = new LeaseKeeper({
    broker,
    clock,
    lanes,
    onLost: (task) => intake.lost(task),
    onExpired: (task) => runner.fail(task, new LeaseExpiredError()),
  });
  const syncer: Syncer = new Syncer({
    events,
    lanes,
    extendLeases: (lane) => leases.extend(lane, true),
    settle: (lane) => processor.probe(lane),
    onReachable: () => processor.pump(),
  });
  return { lanes, runner, verdicts, intake, processor, leases, limiters, syncer };
}
