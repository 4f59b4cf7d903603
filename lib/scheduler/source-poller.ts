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
   * The id of the entry of a config, and a text that is another one when anything of the entry is.
   *
   * @throws InvalidScheduleError, InvalidTaskError, InvalidOptionError
   */
  check(config: PeriodicTaskConfig): { readonly id: string; readonly content: string };
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

interface Wanted {
  readonly config: PeriodicTaskConfig;
  readonly content: string;
}

const CONFIG_NAMES = ['spec', 'task', 'payload', 'options'];

/**
 * Keeps the entries of a scheduler equal to the set that a function returns (asynq's
 * PeriodicTaskManager): removes those that are no longer in it, adds new ones, and replaces those that have changed under their id. When the function
 * fails, or a config in it is wrong, the entries stay as they are; only one whose spec is invalid
 * is skipped alone.
 */
export class SourcePoller {
  readonly loop: Loop;
  /** The content of each entry that is of this source, by id. */
  private readonly own = new Map<string, string>();
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
    for (const [id, content] of this.own) {
      if (wanted.get(id)?.content === content) continue;
      entries.remove(id);
      this.own.delete(id);
    }
    for (const [id, { config, content }] of wanted) {
      if (entries.has(id)) continue;
      entries.add(config);
      this.own.set(id, content);
    }
  }

  /** The configs by id: equal ones are one. Everything is checked before anything changes. */
  private wanted(configs: unknown): Map<string, Wanted> {
    if (!Array.isArray(configs)) {
      throw new InvalidOptionError(`${this.options.name} must return an array of configs, not ${describe(configs)}`);
    }
    const wanted = new Map<string, Wanted>();
    for (const config of configs) {
      const checked = checkConfig(config);
      try {
        const { id, content } = this.options.entries.check(checked);
        wanted.set(id, { config: checked, content });
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
