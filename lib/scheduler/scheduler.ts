import type { Broker } from '../broker/broker.js';
import { Preparer } from '../client/preparer.js';
import type { PayloadArguments } from '../client/types.js';
import type { ClockTimer } from '../clock.js';
import { parseDuration, type Duration } from '../duration.js';
import { InvalidOptionError, SchedulerStateError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import type { PayloadCodec } from '../task/codec.js';
import type { TaskDefinition } from '../task/definition.js';
import type { TaskOptions } from '../task/options.js';
import type { Tracing } from '../tracing/tracing.js';
import { describe, requireFunction } from '../validation.js';
import { deriveId, Entry, type EntryDefinition } from './entry.js';
import { optionTexts } from './option-texts.js';
import { readPeriodicOptions, readSpec, type PeriodicTaskOptions } from './options.js';
import { Publisher } from './publisher.js';
import { Source, type PeriodicTaskConfig, type PeriodicTaskConfigs } from './source.js';
import { Ticker } from './ticker.js';

/** asynq's interval between two looks at a source, in milliseconds. */
export const SYNC_INTERVAL = 180_000;

/** Milliseconds a stop waits for what is under way. */
const LONGEST_STOP = 2_000;

/** A registered periodic task. */
export interface PeriodicTaskInfo {
  readonly id: string;
  readonly spec: string;
  readonly tz: string;
  readonly type: string;
  readonly queue: string;
  readonly payload: Buffer;
  /** As asynq writes them, such as `MaxRetry(3)`. */
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
}

export type SchedulerStatus = 'new' | 'active' | 'stopped';

/**
 * Enqueues tasks again and again, by specs as asynq's scheduler has them. Any number of processes may have the same entries: each
 * planned time of an entry is enqueued once (see broker/scheduling.ts).
 */
export class AsynqScheduler {
  private readonly preparer: Preparer;
  private readonly ticker: Ticker;
  private readonly publisher: Publisher;
  private readonly entries = new Map<string, Entry>();
  private state: SchedulerStatus = 'new';

  constructor(
    private readonly broker: Broker,
    private readonly events: AsynqEvents,
    private readonly settings: SchedulerSettings = {},
  ) {
    const { codec, defaults } = settings;
    this.preparer = new Preparer(broker.keyPrefix, codec, defaults, broker.maxPayloadSize);
    this.ticker = new Ticker(broker.clock);
    this.publisher = new Publisher(broker, events, () => [...this.entries.values()].map((entry) => entry.published()));
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
   * @param spec five fields, `@daily`, `@every 90s`, with an optional `TZ=<zone> ` before it: the dialect of robfig/cron
   * @returns the id: to unregister it, and what asynq's tools call the entry
   * @throws InvalidScheduleError, InvalidTaskError, InvalidOptionError; also when there is such an entry already
   */
  register<P>(spec: string, task: TaskDefinition<P>, ...rest: PayloadArguments<P, PeriodicTaskOptions>): string;
  register(spec: string, type: string, payload?: unknown, options?: PeriodicTaskOptions): string;
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

  /** Removes a periodic task; tasks it has enqueued stay. Answers whether there was one. Its history is kept. */
  unregister(id: string): boolean {
    const entry = this.entries.get(id);
    if (!entry) return false;
    entry.remove();
    this.entries.delete(id);
    this.ticker.remove(entry);
    this.changed();
    return true;
  }

  /** What is registered here, in the order of registration. */
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
   * Keeps the entries equal to a set that changes: asked for at the start and at every interval.
   *
   * @param name what messages call it
   * @param interval default 3 minutes, as in asynq
   * @throws InvalidOptionError
   */
  addSource(name: string, configs: PeriodicTaskConfigs, interval: Duration = SYNC_INTERVAL): void {
    requireFunction(configs, `${name}: the source of periodic tasks`, InvalidOptionError);
    const milliseconds = parseDuration(interval, `${name}: interval`);
    if (milliseconds < 1000) {
      throw new InvalidOptionError(`${name}: interval must be a second at least, not ${describe(interval)}`);
    }
    const target = {
      check: (config: PeriodicTaskConfig) => this.define(config).id,
      has: (id: string) => this.entries.has(id),
      add: (config: PeriodicTaskConfig) => this.add(this.define(config)),
      remove: (id: string) => void this.unregister(id),
    };
    const { broker, events } = this;
    this.ticker.add(new Source({ name, configs, interval: milliseconds, clock: broker.clock, events, target }));
  }

  /** @throws SchedulerStateError when it runs or has been stopped */
  start(): void {
    if (this.state === 'active') throw new SchedulerStateError('asynq: the scheduler is already running');
    if (this.state === 'stopped') throw new SchedulerStateError('asynq: the scheduler has already been stopped');
    this.state = 'active';
    if (this.broker.manual) return;
    this.ticker.add(this.publisher);
    this.ticker.start();
  }

  /** Fires nothing more, waits for what is under way and withdraws what was published. Idempotent. */
  async stop(): Promise<void> {
    const wasActive = this.state === 'active';
    this.state = 'stopped';
    if (!wasActive) return;
    let limit: ClockTimer | undefined;
    const passed = new Promise<void>((resolve) => (limit = this.broker.clock.after(LONGEST_STOP, resolve)));
    for (const entry of this.entries.values()) entry.remove();
    // Should Redis be away, what was published ends by its time to live.
    const done = this.ticker.stop().then(() => this.publisher.clear().catch(() => undefined));
    await Promise.race([done, passed]);
    limit?.cancel();
  }

  /** For tests on a broker that is driven by hand: fires what is due, and publishes. */
  async runDue(): Promise<void> {
    await this.ticker.runDue();
    if (this.entries.size > 0) await this.publisher.run();
  }

  /** When something is due next, in milliseconds since the epoch; `Infinity` = nothing is. */
  nextDue(): number {
    return this.ticker.nextDue();
  }

  private add(definition: EntryDefinition): void {
    const { broker, preparer, events } = this;
    const { tracing } = this.settings;
    const entry = new Entry(definition, { broker, preparer, events, tracing, onChange: () => this.changed() });
    this.entries.set(definition.id, entry);
    this.ticker.add(entry);
    this.changed();
  }

  private changed(): void {
    this.publisher.changed();
    this.ticker.rearm();
  }

  /** Checks everything, and encodes the payload once. */
  private define({ spec, task, payload, options = {} }: PeriodicTaskConfig): EntryDefinition {
    const { plan, task: taskOptions } = readPeriodicOptions(options);
    const kind = this.preparer.kindOf(task, taskOptions);
    const schedule = readSpec(spec, plan.tz);
    const payloadBytes = this.preparer.prepare(kind, payload, this.broker.clock.now()).request.message.payload;
    const given = typeof task === 'string' ? taskOptions : { ...task.options, ...taskOptions };
    const texts = optionTexts(given);
    const id = plan.id ?? deriveId(spec, plan.tz, kind.type, payloadBytes, texts);
    return { id, spec, schedule, plan, kind, payload, payloadBytes, optionTexts: texts };
  }
}

const toDate = (time: number | undefined): Date | undefined => (time === undefined ? undefined : new Date(time));
