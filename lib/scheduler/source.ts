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

/** Answers the whole set, every time it is asked. */
export type PeriodicTaskConfigs = () => readonly PeriodicTaskConfig[] | Promise<readonly PeriodicTaskConfig[]>;

/** What a source does with the entries of its scheduler. */
export interface SourceTarget {
  /** The id of the entry a config stands for. @throws InvalidScheduleError, InvalidTaskError, InvalidOptionError */
  check(config: PeriodicTaskConfig): string;
  has(id: string): boolean;
  add(config: PeriodicTaskConfig): void;
  remove(id: string): void;
}

export interface SourceOptions {
  readonly name: string;
  readonly configs: PeriodicTaskConfigs;
  /** Milliseconds between two looks. */
  readonly interval: number;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly target: SourceTarget;
}

const CONFIG_NAMES = ['spec', 'task', 'payload', 'options'];

/**
 * Keeps the entries of a scheduler equal to a set that somebody else knows (asynq's PeriodicTaskManager): vanished ones are removed, new
 * ones added. When the set cannot be had, or a config in it is wrong, the entries stay as they are; only one whose spec
 * cannot be read is passed over alone.
 */
export class SourcePoller {
  readonly loop: Loop;
  private own = new Set<string>();
  private synced = false;

  constructor(private readonly options: SourceOptions) {
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

  /** Until it has succeeded once it is repeated soon; afterwards there is an old set to live on. */
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
    const { target } = this.options;
    const wanted = this.wanted(configs);
    for (const id of this.own) if (!wanted.has(id)) target.remove(id);
    const added = [...wanted].filter(([id]) => !target.has(id));
    for (const [, config] of added) target.add(config);
    const kept = [...this.own].filter((id) => wanted.has(id));
    this.own = new Set([...kept, ...added.map(([id]) => id)]);
  }

  /** By id: equal configs are one. Everything is checked before anything is changed. */
  private wanted(configs: unknown): Map<string, PeriodicTaskConfig> {
    if (!Array.isArray(configs)) {
      throw new InvalidOptionError(`${this.options.name} must answer an array of configs, not ${describe(configs)}`);
    }
    const wanted = new Map<string, PeriodicTaskConfig>();
    for (const config of configs) {
      const checked = checkConfig(config);
      try {
        wanted.set(this.options.target.check(checked), checked);
      } catch (error) {
        if (!(error instanceof InvalidScheduleError)) throw error;
        this.onError(error);
      }
    }
    return wanted;
  }
}

/** In asynq's words. */
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
