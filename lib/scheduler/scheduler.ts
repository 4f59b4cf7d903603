import { withTimeout } from '../async.js';
import type { Broker } from '../broker/broker.js';
import { refuseRepeat } from '../enqueue/repeats.js';
import { Preparer } from '../enqueue/preparer.js';
import type { AnyTask, MissingPayload, PayloadArguments, PayloadFor } from '../client/types.js';
import { parseDuration, type Duration } from '../duration.js';
import { InvalidOptionError, SchedulerStateError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import { Relay } from '../links/relay.js';
import type { Loop } from '../loop.js';
import type { PayloadCodec } from '../task/codec.js';
import type { TaskDefinition } from '../task/definition.js';
import type { TaskOptions } from '../task/options.js';
import type { Tracing } from '../tracing/tracing.js';
import { describe, requireFunction, requireMade } from '../validation.js';
import { Entry, type EntryDefinition } from './entry.js';
import { deriveId } from './entry-id.js';
import { optionTexts } from './option-texts.js';
import { readPeriodicOptions, readSpec, type PeriodicTaskOptions } from './options.js';
import { PacedClock } from './paced-clock.js';
import { Publisher } from './publisher.js';
import { SourcePoller, type PeriodicTaskConfig, type PeriodicTaskConfigs } from './source-poller.js';

/** How often a source is polled, as in asynq. */
const SYNC_INTERVAL_MS = 180_000;

/** How long a stop waits for what is under way. */
const STOP_TIMEOUT_MS = 2_000;

/** A registered periodic task. */
export interface PeriodicTaskInfo {
  readonly id: string;
  readonly spec: string;
  readonly tz: string;
  readonly type: string;
  readonly queue: string;
  readonly payload: Buffer;
  /** In asynq's notation, such as `MaxRetry(3)`. */
  readonly options: readonly string[];
  /** `undefined`: never, or not within five years. */
  readonly next: Date | undefined;
  /** The last planned time that any process has fired. */
  readonly previous: Date | undefined;
}

export interface SchedulerSettings {
  readonly codec?: PayloadCodec | undefined;
  readonly defaults?: TaskOptions | undefined;
  readonly tracing?: Tracing | undefined;
  /** Default: one of its own. */
  readonly relay?: Relay | undefined;
}

export type SchedulerStatus = 'new' | 'active' | 'stopped';

/**
 * Enqueues periodic tasks, by the specs of asynq's scheduler. Any number of processes may have the
 * same entries: each planned time of an entry is enqueued once (see broker/scheduling.ts).
 */
export class AsynqScheduler {
  private readonly preparer: Preparer;
  private readonly publisher: Publisher;
  private readonly entries = new Map<string, Entry>();
  private readonly sources: SourcePoller[] = [];
  private readonly relay: Relay;
  private readonly clock: PacedClock;
  private state: SchedulerStatus = 'new';

  constructor(
    private readonly broker: Broker,
    private readonly events: AsynqEvents,
    private readonly settings: SchedulerSettings = {},
  ) {
    requireMade(broker, 'AsynqScheduler');
    const { codec, defaults, relay = new Relay(broker.links, events) } = settings;
    this.relay = relay;
    this.clock = new PacedClock(broker.clock);
    this.preparer = new Preparer(broker.keyPrefix, codec, defaults, broker.maxPayloadSize);
    this.publisher = new Publisher(broker, events, () => [...this.entries.values()]);
  }

  get status(): SchedulerStatus {
    return this.state;
  }

  /**
   * Adds a periodic task, also while the scheduler runs.
   *
   * @example
   * scheduler.register('0 9 * * 1-5', DailyReport, { region: 'eu' }, { tz: 'Europe/Berlin', missed: 'one' });
   *
   * @param spec five fields, `@daily` or `@every 90s`, with an optional `TZ=<zone> ` before it: the
   * syntax of robfig/cron
   * @returns the id: to unregister it, and what asynq's tools call the entry
   * @throws InvalidScheduleError, InvalidTaskError, InvalidOptionError; the last also when the
   * entry exists already
   */
  register<P>(spec: string, task: TaskDefinition<P> & MissingPayload<P>): never;
  register<T extends AnyTask>(
    spec: string,
    task: T,
    ...rest: PayloadArguments<PayloadFor<T>, PeriodicTaskOptions>
  ): string;
  register(spec: string, task: string | TaskDefinition, payload?: unknown, options?: PeriodicTaskOptions): string {
    const definition = this.define({ spec, task, payload, options });
    const { id, kind } = definition;
    if (this.entries.has(id)) {
      throw new InvalidOptionError(
        `the periodic task "${spec}" of "${kind.type}" is registered already (id ${id}); give it an id of its own`,
      );
    }
    this.add(definition);
    return id;
  }

  /**
   * Removes a periodic task and returns whether it existed. Its history and the tasks it has
   * enqueued stay.
   */
  unregister(id: string): boolean {
    const entry = this.entries.get(id);
    if (!entry) return false;
    void entry.remove();
    this.entries.delete(id);
    this.publisher.changed();
    return true;
  }

  /** The periodic tasks registered here, in the order of registration. */
  list(): PeriodicTaskInfo[] {
    return [...this.entries.values()].map((entry) => {
      const { id, spec, plan, kind, payloadBytes } = entry.definition;
      return {
        id,
        spec,
        tz: plan.tz,
        type: kind.type,
        queue: entry.queue,
        payload: payloadBytes,
        options: entry.definition.optionTexts,
        next: toDate(entry.next),
        previous: toDate(entry.previous),
      };
    });
  }

  /**
   * Keeps the entries equal to a set that changes: calls `configs` at the start and at each
   * interval.
   *
   * @param name what messages call the source
   * @param interval default 3 minutes, as in asynq
   * @throws InvalidOptionError
   */
  addSource(name: string, configs: PeriodicTaskConfigs, interval: Duration = SYNC_INTERVAL_MS): void {
    requireFunction(configs, `${name}: the source of periodic tasks`, InvalidOptionError);
    const milliseconds = parseDuration(interval, `${name}: interval`);
    if (milliseconds < 1000) {
      throw new InvalidOptionError(`${name}: interval must be at least one second, not ${describe(interval)}`);
    }
    const entries = {
      check: (config: PeriodicTaskConfig) => {
        const { id, spec, kind, payloadBytes, optionTexts: texts } = this.define(config);
        const parts = [spec, kind.type, payloadBytes.toString('base64'), texts, config.options];
        return { id, content: JSON.stringify(parts) };
      },
      has: (id: string) => this.entries.has(id),
      add: (config: PeriodicTaskConfig) => this.add(this.define(config)),
      remove: (id: string) => void this.unregister(id),
    };
    const { broker, events } = this;
    const source = new SourcePoller({ name, configs, interval: milliseconds, clock: broker.clock, events, entries });
    this.sources.push(source);
    this.begin(source.loop);
  }

  /** @throws SchedulerStateError when it runs or is stopped */
  start(): void {
    if (this.state === 'active') throw new SchedulerStateError('asynq: the scheduler is already running');
    if (this.state === 'stopped') throw new SchedulerStateError('asynq: the scheduler has already been stopped');
    this.state = 'active';
    for (const loop of this.loops()) this.begin(loop);
    this.begin(this.publisher.loop);
  }

  /**
   * Fires nothing more, waits for the passes under way and withdraws what was published.
   * Idempotent.
   */
  async stop(): Promise<void> {
    const wasActive = this.state === 'active';
    this.state = 'stopped';
    if (!wasActive) return;
    const removed = [...this.entries.values()].map((entry) => entry.remove());
    const stopped = [...this.sources, this.publisher].map(({ loop }) => loop.stop());
    // When Redis is away, what was published expires by itself.
    const done = Promise.all([...removed, ...stopped]).then(() => this.publisher.clear().catch(() => undefined));
    await withTimeout(done, STOP_TIMEOUT_MS, this.broker.clock);
  }

  /** Fires what is due, and publishes. For tests, which drive a broker by hand. */
  async runDue(): Promise<void> {
    for (let due = this.due(); due.length > 0; due = this.due()) await Promise.all(due.map((loop) => loop.run()));
    if (this.entries.size > 0) await this.publisher.loop.run();
  }

  /** When the next pass is due, in milliseconds since the epoch; `Infinity`: never. */
  nextDue(): number {
    return Math.min(...this.loops().map(({ dueAt }) => dueAt));
  }

  private loops(): Loop[] {
    return [...this.sources, ...this.entries.values()].map(({ loop }) => loop);
  }

  private due(): Loop[] {
    const now = this.broker.clock.now();
    return this.loops().filter(({ dueAt }) => dueAt <= now);
  }

  /** A test that moves the clock runs the loops itself. */
  private begin(loop: Loop): void {
    if (this.state === 'active' && !this.broker.manual) loop.start();
  }

  private add(definition: EntryDefinition): void {
    const { broker, preparer, events } = this;
    const { tracing } = this.settings;
    const { relay } = this;
    const entry = new Entry(definition, {
      broker,
      preparer,
      events,
      relay,
      tracing,
      clock: this.clock,
      onChange: () => this.publisher.changed(),
    });
    this.entries.set(definition.id, entry);
    this.begin(entry.loop);
    this.publisher.changed();
  }

  /** Checks everything, and encodes the payload once. */
  private define({ spec, task, payload, options = {} }: PeriodicTaskConfig): EntryDefinition {
    const { plan, task: taskOptions } = readPeriodicOptions(options);
    const kind = this.preparer.kindOf(task, taskOptions);
    const schedule = readSpec(spec, plan.tz);
    const prepared = this.preparer.prepare(kind, payload, this.broker.clock.now());
    refuseRepeat(prepared, 'a periodic entry', `give the entry ${prepared.repeats}: false`);
    const payloadBytes = prepared.request.message.payload;
    const given = typeof task === 'string' ? taskOptions : { ...task.options, ...taskOptions };
    const texts = optionTexts(given);
    const id = plan.id ?? deriveId(spec, plan.tz, kind.type, payloadBytes, texts);
    return { id, spec, schedule, plan, kind, payload, payloadBytes, optionTexts: texts };
  }
}

const toDate = (time: number | undefined): Date | undefined => (time === undefined ? undefined : new Date(time));
