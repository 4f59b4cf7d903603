import type { Broker } from '../broker/broker.js';
import type { AsynqEvents } from '../events/events.js';
import { Intake } from './intake.js';
import type { Lane } from './lane.js';
import { Lanes } from './lanes.js';
import { LeaseKeeper } from './lease-keeper.js';
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
  readonly encodeResult: (result: unknown) => Buffer | undefined;
}

/** What the core tells the loops around it. */
export interface CoreListener {
  onAnswer(lane: Lane, asked: number, got: number): void;
  onRound(idle: boolean): void;
  /** A queue did not answer; the syncer has taken it over and must run. */
  onFailure(): void;
}

export interface Core {
  readonly lanes: Lanes;
  readonly runner: Runner;
  readonly verdicts: Verdicts;
  readonly intake: Intake;
  readonly processor: Processor;
  readonly leases: LeaseKeeper;
  readonly syncer: Syncer;
}

/** Wires the way of a task: taken, run, judged, settled; and what keeps its lease until then. */
export function buildCore(deps: CoreDeps, listener: CoreListener): Core {
  const { broker, mux, options, events, encodeResult } = deps;
  const { clock } = broker;
  const lanes = new Lanes(options.queues);
  const verdicts = new Verdicts({ ...options, clock, events, encodeResult });
  const runner: Runner = new Runner({
    clock,
    events,
    mux,
    verdicts,
    held: () => lanes.held(),
    onVerdict: (task) => processor.finished(task),
    onSlotFree: () => processor.pump(),
  });
  const intake = new Intake({ broker, clock, events, lanes, runner, verdicts, encodeResult });
  const processor: Processor = new Processor({
    broker,
    clock,
    lanes,
    runner,
    intake,
    strictPriority: options.strictPriority,
    concurrency: options.concurrency,
    onAnswer: (lane, asked, got) => listener.onAnswer(lane, asked, got),
    onRound: (idle) => listener.onRound(idle),
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
    settle: (lane) => processor.exchange(lane, 0),
    onReachable: () => processor.pump(),
  });
  return { lanes, runner, verdicts, intake, processor, leases, syncer };
}
