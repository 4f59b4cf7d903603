import { parseDuration, type Duration } from '../duration.js';
import { InvalidOptionError } from '../errors.js';
import { FOREIGN } from '../foreign-names.js';
import { LIMIT_NAMES } from './limits.js';
import {
  describe,
  isBlank,
  refuseBraces,
  rejectMisplacedKeys,
  rejectUnknownKeys,
  requireInteger,
  requireObject,
} from '../validation.js';

/** What the archive of a queue keeps. */
export interface ArchiveSettings {
  /** How many tasks: the newest. `Infinity`: all. Default 9,999, as in asynq. */
  maxTasks?: number;
  /** How long after they were archived, in whole seconds, rounded up. `Infinity`: for ever. Default 90 days, as in asynq. */
  maxAge?: Duration;
}

/** A queue, for whoever puts tasks into it or archives them: give every process the same. */
export interface QueueSettings {
  /**
   * While the queue has this many pending tasks, `enqueue`, `enqueueMany` and method calls of this process are refused (QueueFullError) if
   * their task would be pending. Delayed tasks, and those of a group or that wait for others, take no room. Nothing that is accepted already is ever refused.
   * Default: no limit.
   */
  maxPending?: number;
  /** How long a call waits for room before it is refused; with `maxPending`. Default 0: it does not wait. */
  waitForRoom?: Duration;
  /**
   * Tasks take turns by the keys of their definitions (`fairness`) or calls (`fairnessKey`), whose limits hold in the fleet; those without a
   * key are one more key. Set it in every process that enqueues to the queue or serves it. Not together with `maxPending`. Default `false`: first come, first served.
   */
  fairness?: boolean;
  /** The limits of its archive. Go servers keep to asynq's. Default: asynq's. */
  archive?: ArchiveSettings;
}

/** A limit that is not given is `undefined`. */
export interface ResolvedArchive {
  readonly maxTasks: number | undefined;
  /** Seconds. */
  readonly maxAge: number | undefined;
}

/** How far a client fills a queue. */
export interface ReadRoom {
  readonly maxPending: number;
  /** Milliseconds. */
  readonly waitForRoom: number;
}

/** Settings after all checks. */
export interface ResolvedQueueSettings {
  readonly room: ReadRoom | undefined;
  readonly archive: ResolvedArchive | undefined;
  readonly isFair: boolean;
}

export const QUEUE_SETTING_NAMES: readonly (keyof QueueSettings)[] = [
  'maxPending',
  'waitForRoom',
  'fairness',
  'archive',
];
const KNOWN_OF_ARCHIVE: readonly (keyof ArchiveSettings)[] = ['maxTasks', 'maxAge'];

/** @param given settings by the name of the queue. @throws InvalidOptionError */
export function resolveQueueSettings(given: unknown): ReadonlyMap<string, ResolvedQueueSettings> {
  if (given === undefined) return new Map();
  const queues = requireObject(
    given,
    'queues of the module (settings by name; what a server serves is server: { queues })',
    InvalidOptionError,
  ) as Record<string, unknown>;
  return new Map(Object.entries(queues).map(([queue, settings]) => [checkName(queue), resolve(queue, settings)]));
}

/** How far a client fills queues, by their names; those with a limit. */
export function roomsOf(settings: ReadonlyMap<string, ResolvedQueueSettings>): ReadonlyMap<string, ReadRoom> {
  return new Map([...settings].flatMap(([queue, { room }]) => (room ? [[queue, room] as const] : [])));
}

function resolve(queue: string, given: unknown): ResolvedQueueSettings {
  const name = `queue "${queue}"`;
  if (typeof given === 'number') {
    throw new InvalidOptionError(
      `settings of ${name} must be an object, not ${given}; a priority belongs to server: { queues: { "${queue}": ${given} } }`,
    );
  }
  const settings = requireObject(given, `settings of ${name}`, InvalidOptionError) as QueueSettings;
  rejectMisplacedKeys(
    settings,
    ['priority', ...LIMIT_NAMES],
    name,
    'server: { queues }, beside it',
    InvalidOptionError,
  );
  rejectUnknownKeys(settings, QUEUE_SETTING_NAMES, `setting of ${name}:`, InvalidOptionError, FOREIGN.queueSetting);
  const { archive, fairness = false } = settings;
  if (typeof fairness !== 'boolean') {
    throw new InvalidOptionError(`fairness of ${name} must be true or false, not ${describe(fairness)}`);
  }
  if (fairness && settings.maxPending !== undefined) {
    throw new InvalidOptionError(
      `${name} has fairness and maxPending, which exclude each other; leave one of them out`,
    );
  }
  return {
    isFair: fairness,
    room: resolveRoom(settings, name),
    archive: archive === undefined ? undefined : resolveArchive(archive, `archive of ${name}`),
  };
}

function resolveRoom({ maxPending, waitForRoom = 0 }: QueueSettings, name: string): ReadRoom | undefined {
  const milliseconds = parseDuration(waitForRoom, `waitForRoom of ${name}`, InvalidOptionError);
  if (milliseconds < 0) {
    throw new InvalidOptionError(
      `waitForRoom of ${name} must not be negative, as ${describe(waitForRoom)} is; set 0 to refuse at once`,
    );
  }
  if (maxPending !== undefined) {
    requireInteger(maxPending, `maxPending of ${name}`, InvalidOptionError, { least: 1 });
    return { maxPending, waitForRoom: milliseconds };
  }
  if (milliseconds === 0) return undefined;
  throw new InvalidOptionError(`${name} has waitForRoom and no maxPending; give maxPending, or leave both out`);
}

function resolveArchive(given: unknown, name: string): ResolvedArchive {
  const archive = requireObject(given, name, InvalidOptionError) as ArchiveSettings;
  rejectUnknownKeys(archive, KNOWN_OF_ARCHIVE, `option of the ${name}:`, InvalidOptionError);
  const { maxTasks, maxAge } = archive;
  return { maxTasks: checkMaxTasks(maxTasks, name), maxAge: maxAge === undefined ? undefined : checkAge(maxAge, name) };
}

function checkMaxTasks(maxTasks: number | undefined, name: string): number | undefined {
  if (maxTasks === undefined || maxTasks === Infinity) return maxTasks;
  return requireInteger(maxTasks, `maxTasks of the ${name}`, InvalidOptionError, { least: 1 });
}

function checkAge(maxAge: Duration, name: string): number {
  if (maxAge === Infinity) return Infinity;
  const milliseconds = parseDuration(maxAge, `maxAge of the ${name}`, InvalidOptionError);
  if (milliseconds > 0) return Math.ceil(milliseconds / 1000);
  throw new InvalidOptionError(
    `maxAge of the ${name} must be more than zero, not ${describe(maxAge)}; Infinity keeps tasks for ever`,
  );
}

function checkName(queue: string): string {
  if (isBlank(queue)) throw new InvalidOptionError('queues has a blank name; name a queue');
  refuseBraces(queue, 'queue name', InvalidOptionError);
  return queue;
}
