import type { Broker } from '../broker/broker.js';
import type { AsynqEvents } from '../events/events.js';
import type { Aggregator } from './groups/aggregator.js';
import { Canceller } from './loops/canceller.js';
import type { Core } from './core.js';
import type { Forwarder } from './loops/forwarder.js';
import { GroupWatch } from './groups/group-watch.js';
import type { Grouping } from './groups/grouping.js';
import { HealthCheck } from './loops/health-check.js';
import type { Heartbeater } from './loops/heartbeater.js';
import { Janitor } from './loops/janitor.js';
import { Loop, type LoopStats } from '../loop.js';
import type { Mux } from './attempt/mux.js';
import type { ResolvedServerOptions } from './options.js';
import { Recoverer } from './loops/recoverer.js';
import { StoreCheck } from './loops/store-check.js';
import { Subscriber } from './loops/subscriber.js';

export interface ServerLoopsDeps {
  readonly broker: Broker;
  readonly mux: Mux;
  readonly events: AsynqEvents;
  readonly options: ResolvedServerOptions;
  readonly core: Core;
  readonly heartbeater: Heartbeater;
  readonly forwarder: Forwarder;
  readonly grouping: Grouping;
  readonly aggregator: Aggregator;
  readonly onError: (loop: string, error: unknown) => void;
}

/** The loops around the processor: what they are, when each first runs, and the order in which they start and stop. */
export class ServerLoops {
  private readonly heartbeat: Loop;
  private readonly leases: Loop;
  private readonly subscriber: Subscriber;
  private readonly subscription: Loop;
  private readonly cancellation: Loop;
  private readonly sync: Loop;
  private readonly recovery: Loop;
  private readonly forwarding: Loop;
  private readonly cleaning: Loop;
  private readonly limiting: Loop | undefined;
  private readonly aggregation: Loop | undefined;
  private readonly groupWatch: Loop | undefined;
  private readonly health: Loop | undefined;
  private readonly storeCheck: Loop;
  private delayedChange = false;
  private readonly all: Loop[] = [];

  constructor(private readonly deps: ServerLoopsDeps) {
    const { broker, mux, events, options, core, heartbeater, forwarder, grouping } = deps;
    const { clock } = broker;
    const { queues, runner, verdicts } = core;
    const { aggregators } = grouping;
    const canceller = new Canceller({ broker, queues, cancel: (task, reason) => runner.fail(task, reason) });
    this.subscriber = new Subscriber(broker, (id) => {
      if (canceller.hear(id)) this.cancellation.trigger();
    });
    const recoverer = new Recoverer({ broker, clock, events, queues, mux, verdicts });
    const { janitorInterval: interval, janitorBatchSize: batchSize } = options;
    const janitor = new Janitor({
      broker,
      clock,
      events,
      queues,
      interval,
      batchSize,
      repairGroups: aggregators.size > 0,
    });
    this.heartbeat = this.loop('heartbeater', heartbeater);
    this.leases = this.loop('lease keeper', core.leases);
    this.subscription = this.loop('subscriber', this.subscriber);
    this.cancellation = this.loop('canceller', canceller);
    this.sync = this.loop('syncer', core.syncer);
    this.recovery = this.loop('recoverer', recoverer);
    this.forwarding = this.loop('forwarder', forwarder);
    this.cleaning = this.loop('janitor', janitor);
    if (core.limiters.size > 0) this.limiting = this.loop('limiter', core.limiters);
    if (aggregators.size > 0) this.aggregation = this.loop('aggregator', deps.aggregator);
    if (!aggregators.coverAll) this.groupWatch = this.loop('group watch', new GroupWatch(grouping));
    this.storeCheck = this.loop('store check', new StoreCheck({ broker, events }));
    const hook = options.healthCheck;
    if (hook) {
      const check = new HealthCheck({ broker, events, hook, interval: options.healthCheckInterval });
      this.health = this.loop('health check', check);
    }
  }

  start(): void {
    const { janitorInterval, healthCheckInterval } = this.deps.options;
    this.heartbeat.start(); // visible at once
    this.leases.start(); // before the first task is taken
    this.subscription.start();
    this.cancellation.start();
    this.sync.start(Infinity); // runs when an exchange fails
    this.recovery.start(); // a crashed predecessor's tasks first
    this.forwarding.start();
    this.cleaning.start(janitorInterval);
    this.limiting?.start();
    this.aggregation?.start();
    this.groupWatch?.start();
    this.health?.start(healthCheckInterval);
    this.storeCheck.start(); // once
  }

  /** Due tasks and groups are left to other servers from here on. */
  async stopForwarding(): Promise<void> {
    this.deps.aggregator.stop();
    await Promise.all([this.forwarding.stop(), this.aggregation?.stop()]);
    this.deps.aggregator.close();
  }

  async stop(): Promise<void> {
    // Nothing is held, to settle or to cancel; or Redis is away. At once, as each may have to wait for a Redis that hangs.
    this.deps.core.limiters.close();
    await Promise.all(this.all.map((loop) => loop.stop()));
    // Should Redis be away, the subscription ends with its connection, and the published state by its time to live.
    await this.subscriber.close().catch(() => undefined);
    await this.deps.heartbeater.clear().catch(() => undefined);
  }

  stats(): LoopStats[] {
    return this.all.map((loop) => loop.stats());
  }

  /** A queue's scheduled or retry set has changed: look soon, but not more often than the forwarder's cooldown. */
  delayedChanged(): void {
    if (this.delayedChange) return;
    this.delayedChange = true;
    this.deps.broker.clock.after(this.deps.forwarder.cooldown, () => {
      this.delayedChange = false;
      this.forwarding.trigger();
    });
  }

  /** More groups were due than could be taken, and there is room again. */
  aggregateMore(): void {
    this.aggregation?.trigger();
  }

  /** An exchange failed. */
  settleFailed(): void {
    this.sync.trigger();
  }

  /** Shows a changed status, concurrency or set of queues without waiting for the next beat. */
  publish(): void {
    this.heartbeat.trigger();
  }

  /** A queue was added: its due and abandoned tasks are looked for at once. */
  queuesChanged(): void {
    this.publish();
    this.forwarding.trigger();
    this.recovery.trigger();
    this.aggregation?.trigger();
  }

  private loop(name: string, component: { runOnce(): Promise<number> }): Loop {
    const { broker, onError } = this.deps;
    const loop = new Loop({ name, clock: broker.clock, runOnce: () => component.runOnce(), onError });
    this.all.push(loop);
    return loop;
  }
}
