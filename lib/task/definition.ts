import { InvalidTaskError } from '../errors.js';
import { FOREIGN } from '../foreign-names.js';
import { rejectUnknownKeys, requireFunction, requireObject } from '../validation.js';
import { type Acknowledge, type Acknowledged, readAcknowledge } from './acknowledge.js';
import type { PayloadCodec } from './codec.js';
import type { IsFailure, RetryDelay } from './context.js';
import { readDefinitionLinks } from './link-settings.js';
import type { Jsonify, TaskTypeFor } from './jsonify.js';
import { DEFINITION_LINK_NAMES, type DefinitionLinks, type LinkSettings } from './links.js';
import { TASK_OPTION_NAMES, type TaskOptions } from './options.js';
import { type PayloadVersions, readVersions, type ReadVersions, withVersion } from './payload-versions.js';
import { readStepsOptions, type StepsOptions } from './steps-options.js';
import { pickLimits, TASK_LIMIT_NAMES, type TaskLimits } from './limits.js';
import { type FairnessOptions, readFairness } from './fairness.js';
import { checkRepeat } from './repeat-checks.js';
import { applyOptions, DEFAULT_SETTINGS, name } from './settings.js';

/**
 * Options of a definition besides the defaults of its tasks; they apply where the tasks are
 * handled.
 */
export interface TaskHandling<Received = unknown> extends TaskLimits<Received> {
  /** Milliseconds until the next attempt. Default: the server's, which is asynq's formula. */
  retryDelay?: RetryDelay;
  /** Whether an error counts as a failure. Default: the server's, which is always. */
  isFailure?: IsFailure;
  /**
   * Encodes and decodes the payload, on both sides. Default: the client's and the server's, which
   * is JSON.
   */
  codec?: PayloadCodec;
}

/**
 * A task type with the types of its payload `P` and result `R`: created once by {@link defineTask},
 * used on both sides. `Received` is what handlers get for a `P`.
 */
export interface TaskDefinition<P = unknown, R = unknown, Received = unknown> extends Readonly<
  Omit<TaskHandling, keyof TaskLimits>
> {
  readonly type: string;
  /** The default options of its tasks. */
  readonly options: Readonly<TaskOptions>;
  /** How a handler with steps meets tasks that it has begun before a deploy. */
  readonly stepsOptions?: StepsOptions | undefined;
  /** Limits of its tasks, where they are handled. */
  readonly limits?: Readonly<TaskLimits>;
  /** The version of its payloads, if it is above 1, and what brings older ones up. */
  readonly versions?: ReadVersions | undefined;
  /** What its tasks wait for, and how they are known to those that wait for them. */
  readonly links?: LinkSettings | undefined;
  /** Whose tasks take turns in a fair queue. */
  readonly fairness?: FairnessOptions | undefined;
  /** Until where its callers wait. */
  readonly acknowledge?: Acknowledge | false | undefined;
  /** Never set: it only carries the types. */
  readonly __types?: { readonly payload: P; readonly result: R; readonly received: Received };
}

/** The payload type of a definition. */
export type PayloadOf<D> = D extends TaskDefinition<infer P, unknown> ? P : never;
/** What a handler of a definition gets: its payload as JSON leaves it, where nothing else was said. */
export type ReceivedOf<D> = D extends TaskDefinition<unknown, unknown, infer Received> ? Received : never;
/** The result type of a definition. */
export type ResultOf<D> = D extends TaskDefinition<unknown, infer R> ? R : never;

/** Options of a definition. */
type DefinitionOptions<P, Received> = TaskOptions &
  TaskHandling<NoInfer<Received>> &
  PayloadVersions<Received> &
  DefinitionLinks<P> &
  Acknowledged & {
    /** How a handler with steps meets tasks that it has begun before a deploy. Default: as StepsOptions says. */
    steps?: StepsOptions;
    /** Whose tasks take turns in a fair queue, and what limits these have: see FairnessOptions. Default: its tasks have no key. */
    fairness?: FairnessOptions<P>;
  };

const HANDLING_NAMES = [
  'retryDelay',
  'isFailure',
  'codec',
  'version',
  'upgrade',
  ...TASK_LIMIT_NAMES,
] as const satisfies readonly (keyof (TaskHandling & PayloadVersions))[];
const KNOWN = ['acknowledge', 'fairness', 'steps', ...TASK_OPTION_NAMES, ...HANDLING_NAMES, ...DEFINITION_LINK_NAMES];

/**
 * Defines a task type once, for enqueueing and for handling its tasks.
 *
 * @example
 * export const WelcomeEmail = defineTask<WelcomeDto>('email:welcome', { queue: 'critical', timeout: '30s' });
 * await asynq.enqueue(WelcomeEmail, { userId: 42 });
 *
 * `Received` is what a handler gets. Default: what JSON makes of the payload, so a `Date` is text there; with a codec of the definition,
 * the payload itself. Name it where a codec of the module, or a pipe of the handler, makes something else.
 *
 * @param type the type name, not blank
 * @param options defaults of its tasks (see TaskOptions), how they are handled (see TaskHandling),
 * the version of their payloads (see PayloadVersions), and what they wait for (see DefinitionLinks)
 * @throws InvalidTaskError when the type or an option is invalid
 */
export function defineTask<P = unknown, R = unknown>(
  type: TaskTypeFor<P>,
  options?: DefinitionOptions<P, Jsonify<P>> & { codec?: undefined },
): TaskDefinition<P, R, Jsonify<P>>;
export function defineTask<P = unknown, R = unknown, Received = P>(
  type: string,
  options: DefinitionOptions<P, Received> & { codec: PayloadCodec },
): TaskDefinition<P, R, Received>;
export function defineTask<P, R, Received>(
  type: TaskTypeFor<P>,
  options?: DefinitionOptions<P, Received>,
): TaskDefinition<P, R, Received>;
export function defineTask<P>(type: string, options: DefinitionOptions<P, unknown> = {}): TaskDefinition<P> {
  name(type, 'task typename', 'task typename cannot be empty', "defineTask('email:welcome', options)");
  requireObject(options, `options of task "${type}"`, InvalidTaskError);
  rejectUnknownKeys(options, KNOWN, `option of task "${type}":`, InvalidTaskError, FOREIGN.definition);
  const { key, rememberFor, after, onFailure, waitAtMost, onTimeout, missing, acknowledge, fairness, ...others } =
    options;
  const { version, upgrade, ...unversioned } = others;
  const { retryDelay, isFailure, codec, steps, ...unhandled } = unversioned;
  const { concurrency, globalConcurrency, rateLimit, limitScope, limitBy, ...defaults } = unhandled;
  const settings = applyOptions(DEFAULT_SETTINGS, defaults);
  if (retryDelay !== undefined)
    requireFunction(retryDelay, `retryDelay of task "${type}" ((retried) => milliseconds)`, InvalidTaskError);
  if (isFailure !== undefined) requireFunction(isFailure, `isFailure of task "${type}"`, InvalidTaskError);
  if (codec !== undefined) requireCodec(codec, `codec of task "${type}"`);
  if (steps !== undefined) readStepsOptions(steps, `task "${type}"`, InvalidTaskError);
  const given = { concurrency, globalConcurrency, rateLimit, limitScope, limitBy };
  const limits = pickLimits(given, `task "${type}"`, InvalidTaskError);
  const versions = readVersions({ version, upgrade }, `task "${type}"`);
  withVersion(defaults.headers, versions, `task "${type}"`);
  const wanted = { key, rememberFor, after, onFailure, waitAtMost, onTimeout, missing };
  const links = readDefinitionLinks(type, wanted, defaults.group);
  checkRepeat(type, settings, links);
  return Object.freeze({
    type,
    options: Object.freeze(defaults),
    retryDelay,
    isFailure,
    codec,
    stepsOptions: steps && Object.freeze({ ...steps }),
    limits,
    versions,
    links,
    fairness: fairness === undefined ? undefined : readFairness(fairness, `task "${type}"`),
    acknowledge: acknowledge === undefined ? undefined : readAcknowledge(acknowledge, `acknowledge of task "${type}"`),
  });
}

/** @throws InvalidTaskError unless the value has the two functions of a codec */
export function requireCodec(codec: PayloadCodec, what: string): void {
  requireObject(codec, what, InvalidTaskError);
  requireFunction(codec.encode, `${what}: encode`, InvalidTaskError);
  requireFunction(codec.decode, `${what}: decode`, InvalidTaskError);
}
