import type { Clock } from '../clock.js';
import { InvalidOptionError, InvalidScheduleError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import { Loop, type NextDelay } from '../loop.js';
import type { TaskDefinition } from '../task/definition.js';
import { describe, rejectUnknownKeys, requireNonBlank, requireObject } from '../validation.js';
import type { PeriodicTaskOptions } from './options.js';

/** One periodic task of a set that changes: what `register` takes, as an object. */
export interface PeriodicTaskConfig {
  /** As in `register`. */
  spec: string;
  task: string | TaskDefinition;
  payload?: unknown;
  options?: PeriodicTaskOptions;
}

/** Returns the whole set, each time it is called. */
export type PeriodicTaskConfigs = () => readonly PeriodicTaskConfig[] | Promise<readonly PeriodicTaskConfig[]>;

/** The part of a scheduler that a poller changes. */
export interface EntrySet {
  /**
   * The id of the entry of a config.
   *
   * @throws InvalidScheduleError, InvalidTaskError, InvalidOptionError
   */
  check(config: PeriodicTaskConfig): string;
  has(id: string): boolean;
  add(config: PeriodicTaskConfig): void;
  remove(id: string): void;
}

export interface SourcePollerOptions {
  readonly name: string;
  readonly configs: PeriodicTaskConfigs;
  /** Milliseconds between two polls. */
  readonly interval: number;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly entries: EntrySet;
}

const CONFIG_NAMES = ['spec', 'task', 'payload', 'options'];

/**
 * Keeps the entries of a scheduler equal to the set that a function returns (asynq's
 * PeriodicTaskManager): removes those that are no longer in it and adds new ones. When the function
 * fails, or a config in it is wrong, the entries stay as they are; only one whose spec is invalid
 * is skipped alone.
 */
export class SourcePoller {
  readonly loop: Loop;
  private own = new Set<string>();
  private synced = false;

  constructor(private readonly options: SourcePollerOptions) {
    this.loop = new Loop({
      name: options.name,
      clock: options.clock,
      byTimeOfDay: true,
      runOnce: () => this.runOnce(),
      onError: (_, error) => this.onError(error),
    });
  }

  private onError(error: unknown): void {
    this.options.events.emit('periodicSourceFailed', { source: this.options.name, error });
  }

  /**
   * Until a first poll succeeds, failures are retried with back-off; later ones leave the old set
   * in use.
   */
  private async runOnce(): Promise<NextDelay> {
    try {
      this.sync(await this.options.configs());
      this.synced = true;
    } catch (error) {
      if (!this.synced) throw error;
      this.onError(error);
    }
    return this.options.interval;
  }

  private sync(configs: unknown): void {
    const { entries } = this.options;
    const wanted = this.wanted(configs);
    for (const id of this.own) if (!wanted.has(id)) entries.remove(id);
    const added = [...wanted].filter(([id]) => !entries.has(id));
    for (const [, config] of added) entries.add(config);
    const kept = [...this.own].filter((id) => wanted.has(id));
    this.own = new Set([...kept, ...added.map(([id]) => id)]);
  }

  /** The configs by id: equal ones are one. Everything is checked before anything changes. */
  private wanted(configs: unknown): Map<string, PeriodicTaskConfig> {
    if (!Array.isArray(configs)) {
      throw new InvalidOptionError(`${this.options.name} must return an array of configs, not ${describe(configs)}`);
    }
    const wanted = new Map<string, PeriodicTaskConfig>();
    for (const config of configs) {
      const checked = checkConfig(config);
      try {
        wanted.set(this.options.entries.check(checked), checked);
      } catch (error) {
        if (!(error instanceof InvalidScheduleError)) throw error;
        this.onError(error);
      }
    }
    return wanted;
  }
}

/** The messages are asynq's. */
function checkConfig(given: unknown): PeriodicTaskConfig {
  if (given === undefined || given === null) throw new InvalidOptionError('PeriodicTaskConfig cannot be nil');
  const config = requireObject(given, 'PeriodicTaskConfig', InvalidOptionError) as Partial<PeriodicTaskConfig>;
  rejectUnknownKeys(config, CONFIG_NAMES, 'key of a PeriodicTaskConfig:', InvalidOptionError);
  if (config.task === undefined || config.task === null) {
    throw new InvalidOptionError('PeriodicTaskConfig.Task cannot be nil');
  }
  if (!config.spec) throw new InvalidOptionError('PeriodicTaskConfig.Cronspec cannot be empty');
  requireNonBlank(config.spec, 'PeriodicTaskConfig.Cronspec', InvalidOptionError);
  return config as PeriodicTaskConfig;
}
