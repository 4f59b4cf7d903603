import type { LeaseGuard } from '../broker/lease-guards.js';
import type { Broker, StoredResult, WakeListener, WakeSource } from '../broker/broker.js';
import type { StepCallPreparer } from '../broker/checkpoints.js';
import { WaitingClock } from '../clock.js';
import type { AsynqEvents } from '../events/events.js';
import type { Relay } from '../links/relay.js';
import { encodeJson } from '../task/codec.js';
import type { TaskContexts } from '../task/contexts.js';
import type { Tracing } from '../tracing/tracing.js';
import type { TaskHandlerEntry } from './attempt/handler.js';
import { AttemptHistory } from './attempt/attempt-history.js';
import { Hooks } from './attempt/hooks.js';
import { Limiters } from './attempt/limiters.js';
import { Mux } from './attempt/mux.js';
import { NewerPayloads } from './attempt/newer-payloads.js';
import { Results } from './attempt/results.js';
import { Verdicts } from './attempt/verdict.js';
import type { LimiterListener } from './attempt/waitlist.js';
import { crewName } from './crew/crew-name.js';
import { CrewSeat, type SeatListener } from './crew/crew-seat.js';
import { StandbyCaller } from './crew/standby-caller.js';
import { Executor } from './executor.js';
import { Processor } from './fetching/processor.js';
import type { QueueListener } from './fetching/queue-listener.js';
import { QueueRegistry } from './fetching/queue-registry.js';
import type { QueueState } from './fetching/queue-state.js';
import { Syncer } from './fetching/syncer.js';
import { Waker } from './fetching/waker.js';
import { Aggregator, type AggregatorListener } from './groups/aggregator.js';
import { Aggregators, type TaskAggregatorEntry } from './groups/aggregators.js';
import { identityText, newIdentity } from './identity.js';
import { LoopWatch } from './loops/loop-watch.js';
import { LeaseKeeper } from './loops/lease-keeper.js';
import type { ResolvedServerOptions } from './options.js';
import { ServerLoops } from './server-loops.js';
import type { ServerStatus } from './server-status.js';

export interface CoreDeps {
  readonly broker: Broker;
  readonly relay: Relay;
  readonly handlers: Iterable<TaskHandlerEntry>;
  readonly aggregators: Iterable<TaskAggregatorEntry>;
  readonly options: ResolvedServerOptions;
  readonly events: AsynqEvents;
  readonly tracing: Tracing | undefined;
  readonly contexts: (TaskContexts & StepCallPreparer) | undefined;
  /** Default: bytes as they are, anything else as JSON. */
  readonly encodeResult: ((result: unknown) => StoredResult | undefined) | undefined;
}

/**
 * The parts of a server. Each knows those before it; what it reports, the core passes on to those
 * after it.
 */
export class Core implements QueueListener, LimiterListener, AggregatorListener, WakeListener, SeatListener {
  status: ServerStatus = 'new';
  readonly queues: QueueRegistry;
  readonly mux: Mux;
  readonly aggregators: Aggregators;
  readonly limiters: Limiters;
  readonly executor: Executor;
  readonly verdicts: Verdicts;
  readonly processor: Processor;
  readonly source: WakeSource;
  readonly waker: Waker;
  readonly seat: CrewSeat;
  readonly caller: StandbyCaller;
  readonly aggregator: Aggregator;
  readonly loops: ServerLoops;
  readonly loopWatch: LoopWatch;
  private guard: LeaseGuard | undefined;
  private readonly syncer: Syncer;

  /** @throws InvalidHandlerError */
  constructor(readonly deps: CoreDeps) {
    const { broker, relay, events, tracing, options } = deps;
    const { strictPriority, concurrency, taskCheckInterval: pollInterval, groups } = options;
    const queues = (this.queues = new QueueRegistry(options.queues, this.openGuard()));
    const mux = (this.mux = new Mux(deps.handlers));
    const aggregators = (this.aggregators = new Aggregators(deps.aggregators));
    const common = { broker, relay, clock: broker.clock, events, tracing, queues, mux, aggregators, listener: this };
    const results = new Results(broker.consumer, broker.maxPayloadSize, deps.encodeResult ?? encodeJson);
    const { checkpoints, clock, maxPayloadSize: maxBytes } = broker;
    const identity = newIdentity();
    const notes = { role: broker.notes, clock: broker.manual ? new WaitingClock(clock) : clock };
    const services = {
      results,
      steps: { checkpoints, clock, maxBytes, relay, calls: deps.contexts, isStopping: () => this.isStopping },
      notes,
      events,
      contexts: deps.contexts,
    };
    const verdicts = (this.verdicts = new Verdicts({
      ...common,
      services,
      hooks: new Hooks(options, events),
      history: new AttemptHistory({ clock, server: identityText(identity), most: options.attemptHistory }),
      maxCrashes: options.maxCrashes,
    }));
    const limiters = (this.limiters = new Limiters(mux.entries(), common));
    const newerPayloads = new NewerPayloads(mux.entries(), common);
    const executor = (this.executor = new Executor({ ...common, limiters, newerPayloads, verdicts, services }));
    const exchanging = { ...common, exchanger: executor, strictPriority, concurrency };
    const processor = (this.processor = new Processor(exchanging));
    const leases = new LeaseKeeper({ ...common, attempts: executor });
    const syncer = (this.syncer = new Syncer({ ...common, leases, processor }));
    const source = (this.source = broker.wake.watch(this));
    this.loopWatch = new LoopWatch({ ...common, guard: this.guard });
    const fetches = mux.size > 0;
    const { patterns: aggregates } = aggregators;
    const { policies } = groups;
    const crewOf = (): string => crewName({ fetches, queues: queues.names(), aggregates, policies });
    const seat = (this.seat = new CrewSeat({ ...common, crewOf, sits: () => processor.isFetching || !fetches }));
    const caller = (this.caller = new StandbyCaller({ ...common, seat }));
    const waker = (this.waker = new Waker({ ...common, processor, source, pollInterval, seat, caller }));
    const groupServices = { ...common, groups };
    const aggregator = (this.aggregator = new Aggregator(groupServices));
    const served = { attempts: executor, verdicts, limiters, newerPayloads };
    const parts = { ...served, leases, syncer, source, waker, aggregator, seat };
    this.loops = new ServerLoops({ ...common, ...parts, groupServices, options, server: this, identity });
  }

  /** One that is only driven by hand has no loop that could stand still. */
  private openGuard(): LeaseGuard | undefined {
    const { broker, events, options } = this.deps;
    if (!options.leaseThread) return undefined;
    const onUnavailable = (reason: string): void => events.emit('leasesUnguarded', { reason });
    const opened = broker.leaseGuards.open({ capacity: options.concurrency, onUnavailable });
    if (!opened) return undefined;
    return (this.guard = {
      hold: (lease, deadline) => {
        if (this.status !== 'new') opened.hold(lease, deadline);
      },
      release: (lease) => opened.release(lease),
      beat: () => opened.beat(),
      close: () => opened.close(),
    });
  }

  /** It claims nothing any more. */
  private get isStopping(): boolean {
    return this.status === 'stopped' || this.status === 'closed';
  }

  get concurrency(): number {
    return this.processor.concurrency;
  }

  /** Without handlers every task it claimed would fail. */
  startFetching(): void {
    if (this.mux.size > 0) this.processor.startFetching();
  }

  workAvailable(): void {
    if (this.executor.batchesWaiting > 0) this.executor.collectors.slotFreed();
    this.processor.pump();
  }

  hasRoom(): boolean {
    return this.processor.room > 0;
  }

  get takesTasks(): boolean {
    return this.executor.accepting;
  }

  get freeSlots(): number {
    return this.processor.free;
  }

  get isBehind(): boolean {
    return this.processor.isBehind;
  }

  get isOverfull(): boolean {
    return this.executor.running > this.executor.slots(this.processor.concurrency);
  }

  /** Claimed tasks wait for a token without a slot. */
  slotsTaken(count: number): void {
    this.executor.running += count;
  }

  heldWanted(queue: string, count: number): void {
    const state = this.queues.get(queue);
    if (!state) return;
    state.heldWanted = count;
    if (count > 0) this.processor.pump();
  }

  exchanged(queue: QueueState, asked: number, got: number): void {
    this.waker.exchanged(queue, asked, got);
  }

  exchangeFailed(queue: QueueState, error: unknown): void {
    if (this.syncer.takeOver(queue, error)) this.loops.sync();
  }

  roundsOver(): void {
    if (this.status === 'active') this.waker.afterRound();
    this.limiters.look();
  }

  tasksWoken(queue: string): void {
    this.processor.pollQueue(queue);
  }

  roomForSets(): void {
    this.loops.aggregate();
  }

  onMaintains(): void {
    this.loops.maintain();
  }

  onAwake(): void {
    this.waker.wakeUp();
  }

  onSeatFree(): void {
    this.loops.seatChanged();
  }

  onPending(queue: string): void {
    this.waker.onPending(queue);
  }

  onDelayed(queue: string): void {
    this.loops.delayedChanged(queue);
  }

  onPlaces(): void {
    this.loops.placesChanged();
  }

  onLost(): void {
    this.loops.placesChanged();
    this.waker.onLost();
  }
}
