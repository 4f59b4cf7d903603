import type { Broker, WakeSource } from '../broker/broker.js';
import type { LinkNews } from '../broker/links.js';
import type { Clock } from '../clock.js';
import type { AsynqEvents } from '../events/events.js';
import type { Relay } from '../links/relay.js';
import { Loop, type LoopStats } from '../loop.js';
import type { ServerIdentity } from '../broker/monitoring.js';
import type { ServerProfile } from '../broker/server-profile.js';
import type { Attempts } from './attempt/attempts.js';
import type { Limiters } from './attempt/limiters.js';
import type { Mux } from './attempt/mux.js';
import type { NewerPayloads } from './attempt/newer-payloads.js';
import type { Verdicts } from './attempt/verdict.js';
import type { CrewSeat } from './crew/crew-seat.js';
import type { QueueRegistry } from './fetching/queue-registry.js';
import type { Syncer } from './fetching/syncer.js';
import type { Waker } from './fetching/waker.js';
import type { Aggregator } from './groups/aggregator.js';
import type { GroupServices } from './groups/group-services.js';
import { GroupWatch } from './groups/group-watch.js';
import { Canceller } from './loops/canceller.js';
import { FLEET_CHECK_DELAY_MS, FleetCheck } from './loops/fleet-check.js';
import { Forwarder } from './loops/forwarder.js';
import { HealthCheck } from './loops/health-check.js';
import { Heartbeater, type PublishedServer } from './loops/heartbeater.js';
import { Janitor } from './loops/janitor.js';
import type { LeaseKeeper } from './loops/lease-keeper.js';
import { LINK_KEEPER, LinkKeeper } from './loops/link-keeper.js';
import { Recoverer } from './loops/recoverer.js';
import { StoreCheck } from './loops/store-check.js';
import { Subscriber } from './loops/subscriber.js';
import { TurnFiller } from './loops/turn-filler.js';
import type { ResolvedServerOptions } from './options.js';
import { profileOf } from './profile.js';

/** How long a loop rests that is left to others of the crew. */
const REST_MS = 5_000;

interface Component {
  runOnce(): Promise<number>;
}

export interface ServerLoopsDeps {
  readonly broker: Broker;
  readonly relay: Relay;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly options: ResolvedServerOptions;
  readonly server: PublishedServer;
  readonly identity: ServerIdentity;
  readonly source: WakeSource;
  readonly waker: Pick<Waker, 'released'>;
  readonly seat: CrewSeat;
  readonly queues: QueueRegistry;
  readonly mux: Mux;
  readonly attempts: Attempts;
  readonly verdicts: Verdicts;
  readonly limiters: Limiters;
  readonly newerPayloads: NewerPayloads;
  readonly leases: LeaseKeeper;
  readonly syncer: Syncer;
  readonly groupServices: GroupServices;
  readonly aggregator: Aggregator;
}

/**
 * The loops beside the tasks: what they are, when each first runs, and the order in which they
 * start and stop.
 */
export class ServerLoops {
  readonly linkKeeper: LinkKeeper;
  private readonly heartbeater: Heartbeater;
  private readonly forwarder: Forwarder;
  private readonly subscriber: Subscriber;
  private readonly seating: Loop;
  private readonly heartbeat: Loop;
  private readonly leases: Loop;
  private readonly subscription: Loop;
  private readonly cancellation: Loop;
  private readonly syncing: Loop;
  private readonly recovery: Loop;
  private readonly forwarding: Loop;
  private readonly cleaning: Loop;
  private readonly filling: Loop;
  private readonly limiting: Loop | undefined;
  private readonly payloadSearch: Loop | undefined;
  private readonly aggregation: Loop | undefined;
  private readonly groupWatch: Loop | undefined;
  private readonly health: Loop | undefined;
  private readonly storeCheck: Loop;
  private readonly fleetCheck: Loop;
  private readonly linkKeeping: Loop;
  private delayedChange = false;
  private offCarry = (): void => undefined;
  private readonly all: Loop[] = [];
  private readonly maintaining: Loop[] = [];

  constructor(private readonly deps: ServerLoopsDeps) {
    const { options, limiters, newerPayloads, groupServices } = deps;
    const { aggregators } = groupServices;
    const canceller = new Canceller(deps);
    const profile = (): ServerProfile => profileOf({ ...deps, aggregators, handlers: deps.mux.entries() });
    this.heartbeater = new Heartbeater({ ...deps, strictPriority: options.strictPriority, profile });
    this.forwarder = new Forwarder({ ...deps, interval: options.delayedTaskCheckInterval });
    this.subscriber = new Subscriber(deps.broker.cancellation, (id) => {
      if (canceller.receive(id)) this.cancellation.trigger();
    });
    this.seating = this.loop('crew seat', deps.seat);
    this.heartbeat = this.loop('heartbeater', this.heartbeater);
    this.leases = this.loop('lease keeper', deps.leases);
    this.subscription = this.loop('subscriber', this.subscriber);
    this.cancellation = this.loop('canceller', canceller);
    this.syncing = this.loop('syncer', deps.syncer);
    this.recovery = this.maintenance('recoverer', new Recoverer(deps));
    this.forwarding = this.maintenance('forwarder', this.forwarder);
    this.cleaning = this.maintenance('janitor', this.makeJanitor());
    this.filling = this.maintenance('turn filler', new TurnFiller(deps));
    if (limiters.size > 0) this.limiting = this.loop('limiter', limiters);
    if (newerPayloads.searches) this.payloadSearch = this.loop('payload search', newerPayloads);
    if (aggregators.size > 0) this.aggregation = this.makeAggregation();
    if (!aggregators.coverAll) this.groupWatch = this.maintenance('group watch', new GroupWatch(groupServices));
    this.linkKeeper = new LinkKeeper(deps);
    this.linkKeeping = this.maintenance(LINK_KEEPER, this.linkKeeper);
    this.storeCheck = this.loop('store check', new StoreCheck(deps));
    this.fleetCheck = this.loop('fleet check', new FleetCheck({ ...deps, serverId: deps.identity.serverId }));
    const { healthCheck: hook, healthCheckInterval: interval } = options;
    if (hook) this.health = this.loop('health check', new HealthCheck({ ...deps, hook, interval }));
  }

  start(): void {
    const { janitorInterval, healthCheckInterval } = this.deps.options;
    this.heartbeat.start(); // visible at once
    this.seating.start(); // until it knows its seat, a server does all itself
    this.leases.start(); // before the first task is claimed
    this.subscription.start();
    this.cancellation.start();
    this.syncing.start(Infinity); // runs when an exchange fails
    this.recovery.start(); // a crashed predecessor's tasks first
    this.forwarding.start();
    this.cleaning.start(janitorInterval);
    this.filling.start();
    this.limiting?.start();
    this.payloadSearch?.start(); // tasks that older servers have left
    this.aggregation?.start();
    this.groupWatch?.start();
    this.linkKeeping.start();
    this.offCarry = this.deps.relay.onCarry((news) => this.carried(news));
    this.health?.start(healthCheckInterval);
    this.storeCheck.start(); // once
    this.fleetCheck.start(FLEET_CHECK_DELAY_MS); // once
  }

  /** Due tasks and groups are left to other servers from here on. */
  async stopForwarding(): Promise<void> {
    this.deps.aggregator.stop();
    await Promise.all([this.forwarding.stop(), this.aggregation?.stop()]);
    this.deps.aggregator.close();
  }

  /**
   * Nothing is held, to settle or to cancel; or Redis is away. All stop at once, as each may wait
   * for a Redis that hangs.
   */
  async stop(): Promise<void> {
    this.deps.limiters.close();
    this.offCarry();
    await Promise.all([...this.all.map((loop) => loop.stop()), this.linkKeeper.close(), this.deps.seat.close()]);
    // If Redis is away, the subscription ends with its connection, and the published state by its
    // time to live.
    await this.subscriber.close().catch(() => undefined);
    await this.heartbeater.clear().catch(() => undefined);
  }

  stats(): LoopStats[] {
    return this.all.map((loop) => loop.stats());
  }

  /**
   * The scheduled or retry set of a queue has changed. Forwards soon, but keeps to the forwarder's
   * cooldown.
   */
  delayedChanged(queue: string): void {
    this.forwarder.changed(queue);
    if (this.delayedChange) return;
    this.delayedChange = true;
    this.deps.clock.after(this.forwarder.cooldown, () => {
      this.delayedChange = false;
      this.forwarding.trigger();
    });
  }

  /** Sets of grouped tasks that were due could not be claimed, and now there is room. */
  aggregate(): void {
    this.aggregation?.trigger();
  }

  /** This server maintains its queues from here on. */
  maintain(): void {
    for (const loop of this.maintaining) loop.trigger();
  }

  /** There may be a seat to take, or one to leave. */
  seatChanged(): void {
    this.deps.seat.reconsider();
    this.seating.trigger();
  }

  /** An exchange has failed. */
  sync(): void {
    this.syncing.trigger();
  }

  /**
   * Shows a changed status, concurrency or set of queues without waiting for the next heartbeat.
   */
  publish(): void {
    this.heartbeat.trigger();
  }

  /** Publishes a server that was not started as one that runs, while the work goes on. */
  async whilePublished<T>(work: () => Promise<T>): Promise<T> {
    await this.heartbeater.runOnce('active');
    return work().finally(() => this.heartbeater.clear());
  }

  /** A queue was added: its due and abandoned tasks are searched for at once. */
  queuesChanged(): void {
    this.publish();
    this.seatChanged();
    this.forwarding.trigger();
    this.recovery.trigger();
    this.aggregation?.trigger();
  }

  /** This process has made or settled links, and may have put tasks into its own queues. */
  private carried(news: readonly LinkNews[]): void {
    this.placesChanged();
    for (const one of news) if (one.kind === 'wait' && one.state === 'pending') this.deps.waker.released(one.queue);
  }

  /** There may be links where there were none, or a notice of that is lost. */
  placesChanged(): void {
    const delay = this.linkKeeper.notice();
    if (delay !== undefined) this.linkKeeping.runWithin(delay);
  }

  /** Who maintains the queues looks for groups that are due. The others with a seat help. */
  private makeAggregation(): Loop {
    const { aggregator, seat } = this.deps;
    const runOnce = async (): Promise<number> => {
      if (seat.maintains) return aggregator.runOnce();
      if (seat.aggregates) return aggregator.helpOnce();
      aggregator.rest();
      return REST_MS;
    };
    const loop = this.loop('aggregator', { runOnce });
    this.maintaining.push(loop);
    return loop;
  }

  private makeJanitor(): Janitor {
    const { options, groupServices } = this.deps;
    const { janitorInterval: interval, janitorBatchSize: batchSize } = options;
    return new Janitor({ ...this.deps, interval, batchSize, repairGroups: groupServices.aggregators.size > 0 });
  }

  /** A loop that rests while others of the crew maintain its queues. */
  private maintenance(name: string, component: Component): Loop {
    const loop = this.loopWhile(() => this.deps.seat.maintains, name, component);
    this.maintaining.push(loop);
    return loop;
  }

  private loopWhile(condition: () => boolean, name: string, component: Component): Loop {
    return this.loop(name, { runOnce: () => (condition() ? component.runOnce() : Promise.resolve(REST_MS)) });
  }

  private loop(name: string, component: Component): Loop {
    const { clock, events } = this.deps;
    const onError = (loop: string, error: unknown): void => events.emit('loopFailed', { loop, error });
    const loop = new Loop({ name, clock, runOnce: () => component.runOnce(), onError });
    this.all.push(loop);
    return loop;
  }
}
