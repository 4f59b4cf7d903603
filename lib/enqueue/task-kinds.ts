import { InvalidTaskError } from '../errors.js';
import { type Acknowledge, type Acknowledged, readAcknowledge } from '../task/acknowledge.js';
import type { PayloadCodec } from '../task/codec.js';
import { requireCodec, type TaskDefinition } from '../task/definition.js';
import { FAIRNESS_OF_CALL, type FairnessOf, type FairnessOfCall, fairnessOfKind } from '../task/fairness.js';
import { limitKeyOf } from '../task/limit-key.js';
import type { TaskLimits } from '../task/limits.js';
import { readCallLinks, readKeyText } from '../task/link-settings.js';
import { CALL_LINK_NAMES, type CallLinks, type LinkSettings } from '../task/links.js';
import type { TaskOptions } from '../task/options.js';
import { withVersion } from '../task/payload-versions.js';
import { checkRepeat } from '../task/repeat-checks.js';
import type { RepeatSettings } from '../task/repeats.js';
import { applyOptions, DEFAULT_SETTINGS, name, type TaskSettings } from '../task/settings.js';
import { circleHint, describe } from '../validation.js';
import type { Key } from './repeats.js';

export const NO_PAYLOAD: Buffer = Buffer.alloc(0);

const CALL_NAMES = [...CALL_LINK_NAMES, ...FAIRNESS_OF_CALL, 'acknowledge'];

/** Of so many types it is known that they have a definition: types may have ids in them. */
const MAX_DEFINED = 1_000;

export type CallOptions = TaskOptions & CallLinks<never> & Acknowledged & FairnessOfCall;

/** What tasks of one type and the same options share, checked and merged. */
export interface TaskKind {
  readonly type: string;
  readonly settings: TaskSettings;
  readonly codec: PayloadCodec;
  /** Only when its tasks wait for others, or their ends are remembered. */
  readonly links: LinkSettings | undefined;
  /** The business id of its tasks. */
  readonly key: Key | undefined;
  /** Of the call or the definition; `undefined`: neither says anything. */
  readonly acknowledge: Acknowledge | false | undefined;
  /** Whose tasks they are, where tasks take turns. */
  readonly fairness: FairnessOf | undefined;
  /** Checks the key of limits that hold per key. @throws InvalidTaskError */
  readonly checkLimitKey: ((bytes: Buffer | undefined) => void) | undefined;
}

/** Merges and checks what is said of tasks: by a client, a definition, a call. What a definition says is read once. */
export class TaskKinds {
  private readonly defaults: TaskSettings;
  /** The types with a definition. */
  private readonly defined = new Set<string>();
  private readonly kinds = new WeakMap<TaskDefinition, TaskKind>();

  /** @throws InvalidTaskError when the codec or a default is invalid */
  constructor(
    private readonly codec: PayloadCodec,
    defaults: TaskOptions,
  ) {
    requireCodec(codec, 'client codec');
    this.defaults = applyOptions(DEFAULT_SETTINGS, defaults);
  }

  /**
   * Defaults of the client, then of the definition, then the options of the call: the last wins.
   *
   * @throws InvalidTaskError
   */
  of(task: string | TaskDefinition, options: CallOptions | undefined): TaskKind {
    const kind = typeof task === 'string' ? this.kindOfType(task) : this.kindOfDefinition(task);
    if (options === undefined) return kind;
    const { type, codec, checkLimitKey } = kind;
    const settings = applyOptions(kind.settings, options, CALL_NAMES);
    const acknowledge =
      options.acknowledge === undefined
        ? kind.acknowledge
        : readAcknowledge(options.acknowledge, `acknowledge of task "${type}"`);
    if (typeof task !== 'string' && options.headers) withVersion(settings.headers, task.versions, `task "${type}"`);
    const base = typeof task === 'string' ? undefined : task.links;
    const own = options.key === undefined ? undefined : readKeyText(options.key, `key of task "${type}"`);
    const links = linksInUse(readCallLinks(type, base, options, settings.group));
    const key = own ?? kind.key;
    checkRepeat(type, settings, links);
    const isFairer = options.fairnessKey !== undefined || options.fairnessWeight !== undefined;
    const definition = typeof task === 'string' ? undefined : task.fairness;
    const fairness = isFairer ? fairnessOfKind(definition, options, `task "${type}"`) : kind.fairness;
    if (own === undefined) return { type, settings, codec, links, key, acknowledge, fairness, checkLimitKey };
    requireUse(type, settings.repeat, links);
    const named = links && { ...links, key: () => own };
    return { type, settings, codec, links: named, key, acknowledge, fairness, checkLimitKey };
  }

  hasDefinition(type: string): boolean {
    return this.defined.has(type);
  }

  private kindOfType(type: string): TaskKind {
    const { defaults: settings, codec } = this;
    const nothing = { links: undefined, key: undefined, acknowledge: undefined, fairness: undefined };
    return { type: checkedType(type), settings, codec, ...nothing, checkLimitKey: undefined };
  }

  private kindOfDefinition(task: TaskDefinition): TaskKind {
    if (typeof task !== 'object' || task === null) {
      throw new InvalidTaskError(
        `a task must be a type name or a task definition, not ${describe(task)}${circleHint(task) || methodHint(task)}`,
      );
    }
    let kind = this.kinds.get(task);
    if (!kind) {
      refuseWorkflow(task);
      refuseNoType(task);
      this.kinds.set(task, (kind = this.readDefinition(task)));
    }
    return kind;
  }

  private readDefinition({
    type,
    options,
    codec = this.codec,
    versions,
    links,
    acknowledge,
    fairness,
    limits,
  }: TaskDefinition): TaskKind {
    const own = options === undefined ? this.defaults : applyOptions(this.defaults, options);
    const settings = versions ? { ...own, headers: withVersion(own.headers, versions, `task "${type}"`) } : own;
    requireCodec(codec, `codec of task ${describe(type)}`);
    const used = links && readCallLinks(checkedType(type), links, {}, settings.group);
    const turns = fairness && fairnessOfKind(fairness, {}, `task "${type}"`);
    const further = { links: linksInUse(used), key: links?.key, acknowledge, fairness: turns };
    const checkLimitKey = limitKeyCheck(type, codec, limits);
    if (this.defined.size < MAX_DEFINED) this.defined.add(type);
    const kind = { type: checkedType(type), settings, codec, ...further, checkLimitKey };
    checkRepeat(kind.type, settings, kind.links);
    return kind;
  }
}

/** A key alone is for the definitions that this one waits for. */
const linksInUse = (links: LinkSettings | undefined): LinkSettings | undefined =>
  links && (links.rememberFor > 0 || links.after.length > 0) ? links : undefined;

/** @throws InvalidTaskError when a call names a key for nothing */
function requireUse(type: string, repeat: RepeatSettings | undefined, links: LinkSettings | undefined): void {
  if (repeat?.by === 'key' || repeat?.by === 'identity' || links) return;
  throw new InvalidTaskError(
    `key of task "${type}" is used by nothing; give once, debounce, throttle, latest or supersede, or unique: { for, by: 'key' }`,
  );
}

/** @throws InvalidTaskError for what `workflow`, `chain` or `parallel` has made */
function refuseWorkflow(task: object): void {
  if ('type' in task || !('add' in task && typeof task.add === 'function')) return;
  throw new InvalidTaskError(
    `a task must be a type name or a task definition, not a workflow: start it by asynq.start(workflow, { id })`,
  );
}

/** @throws InvalidTaskError for another object, such as a job of another library */
function refuseNoType({ type }: { readonly type?: unknown }): void {
  if (typeof type === 'string') return;
  throw new InvalidTaskError(
    `task typename must be a string, not ${describe(type)}; write enqueue('email:welcome', payload, options), or give what defineTask returns`,
  );
}

const checkedType = (type: unknown): string => name(type, 'task typename', 'task typename cannot be empty');

/** Its function gets what a handler would: it is for the payload as it is decoded. */
function limitKeyCheck(type: string, codec: PayloadCodec, limits: TaskLimits | undefined): TaskKind['checkLimitKey'] {
  if (!limits?.limitBy) return undefined;
  const limitBy = (payload: unknown) => limits.limitBy!(payload);
  return (bytes) => void limitKeyOf(limitBy, codec.decode(bytes ?? NO_PAYLOAD), type, InvalidTaskError);
}

const methodHint = (task: unknown): string =>
  typeof task === 'function'
    ? '; to enqueue by a class and its method inject it: @InjectTasks(Emails) emails: TasksOf<Emails>'
    : '';
