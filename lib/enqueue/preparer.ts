import type { EnqueueRequest } from '../broker/broker.js';
import type { RepeatRequest } from '../broker/uniqueness.js';
import { ceilSeconds } from '../clock.js';
import { InvalidTaskError } from '../errors.js';
import { type Acknowledge, type Acknowledged, readAcknowledge } from '../task/acknowledge.js';
import { jsonCodec, type PayloadCodec } from '../task/codec.js';
import { findJsonLoss, type JsonLoss } from '../task/json-loss.js';
import { readCallLinks, readKeyText } from '../task/link-settings.js';
import { CALL_LINK_NAMES, type CallLinks, type LinkSettings } from '../task/links.js';
import { requireCodec, type TaskDefinition } from '../task/definition.js';
import { FAIRNESS_OF_CALL, type FairnessOf, type FairnessOfCall, fairnessOfKind } from '../task/fairness.js';
import type { TaskOptions } from '../task/options.js';
import { limitKeyOf } from '../task/limit-key.js';
import type { TaskLimits } from '../task/limits.js';
import { checkRepeat, requireRepeatKey } from '../task/repeat-checks.js';
import type { RepeatSettings } from '../task/repeats.js';
import { withVersion } from '../task/payload-versions.js';
import { DEFAULT_MAX_PAYLOAD_BYTES, requirePayloadSize } from '../task/payload-size.js';
import { applyOptions, DEFAULT_SETTINGS, name, type TaskSettings } from '../task/settings.js';
import { newTaskId } from '../task/task-id.js';
import { circleHint, describe } from '../validation.js';
import { EXPIRY_HEADER, expiryText } from '../wire/expiry.js';
import { Keyspace } from '../wire/keys.js';
import { linked } from './linked-task.js';
import { prepared, type PreparedTask } from './prepared-task.js';
import { byKey, type Key, type Repeating, repeating } from './repeats.js';

/** asynq's timeout of a task with neither timeout nor deadline. */
const DEFAULT_TIMEOUT_SECONDS = 1800;

const NO_PAYLOAD = Buffer.alloc(0);

const CALL_NAMES = [...CALL_LINK_NAMES, ...FAIRNESS_OF_CALL, 'acknowledge'];

/** What a preparer tells of. Default: nothing. */
export interface Notices {
  /** The first payload of a type loses something as JSON. */
  readonly onLoss?: ((type: string, loss: JsonLoss) => void) | undefined;
  /** A task has another queue than the one before. */
  readonly onQueue?: ((queue: string) => void) | undefined;
}

/** Types may have ids in them: the payloads of more than these are not searched. */
const MAX_SEARCHED = 1_000;

/** A queue, and the id of a task or a lock that it holds. */
export type KnownByKey = { readonly queue: string } & NonNullable<ReturnType<typeof byKey>>;

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

/**
 * Turns a caller's task into a request: merges options, checks everything, encodes the payload.
 * Writes nothing.
 */
export class Preparer {
  private readonly keyspace: Keyspace;
  private readonly codec: PayloadCodec;
  private readonly defaults: TaskSettings;
  /** The types whose first payload was searched. */
  private readonly searched = new Set<string>();
  /** The types with a definition. */
  private readonly defined = new Set<string>();
  private lastQueue: string | undefined;
  private readonly kinds = new WeakMap<TaskDefinition, TaskKind>();

  /**
   * @param maxPayloadSize bytes
   * @throws InvalidTaskError when the codec or a default is invalid
   */
  constructor(
    keyPrefix: string,
    codec: PayloadCodec = jsonCodec,
    defaults: TaskOptions = {},
    private readonly maxPayloadSize = DEFAULT_MAX_PAYLOAD_BYTES,
    private readonly notices: Notices = {},
  ) {
    requireCodec(codec, 'client codec');
    this.keyspace = new Keyspace(keyPrefix);
    this.codec = codec;
    this.defaults = applyOptions(DEFAULT_SETTINGS, defaults);
  }

  /**
   * Defaults of the client, then of the definition, then the options of the call: the last wins.
   *
   * @throws InvalidTaskError
   */
  kindOf(
    task: string | TaskDefinition,
    options: (TaskOptions & CallLinks<never> & Acknowledged & FairnessOfCall) | undefined,
  ): TaskKind {
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

  /**
   * How a task of this definition is known by its business id, in which queue.
   *
   * @throws InvalidTaskError when it is not
   */
  byKey(
    definition: TaskDefinition,
    key: string,
    queue = this.kindOf(definition, undefined).settings.queue,
  ): KnownByKey {
    const { type, settings } = this.kindOf(definition, undefined);
    const known = byKey(type, key, settings.repeat, this.keyspace.queue(queue));
    if (known) return { queue, ...known };
    throw new InvalidTaskError(
      `a task "${type}" cannot be found by its key; give its definition once, debounce, throttle, latest, supersede or ` +
        "unique: { for, by: 'key' }, or say which task by its TaskInfo",
    );
  }

  /**
   * @param now milliseconds since the epoch.
   * @throws InvalidTaskError when the payload cannot be encoded, or is too large
   */
  prepare(kind: TaskKind, payload: unknown, now: number): PreparedTask {
    const { settings } = kind;
    const processIn = settings.repeat?.policy === 'debounce' ? settings.repeat.time : settings.processIn;
    const startAt = processIn === undefined ? settings.processAt : now + processIn;
    const delayedTo = startAt !== undefined && startAt > now ? startAt : undefined;
    const bytes = encodePayload(kind, payload);
    if (this.notices.onLoss && !this.searched.has(kind.type)) this.searchLoss(kind, payload);
    if (settings.queue !== this.lastQueue) this.noteQueue(settings.queue);
    if (bytes !== undefined && bytes.length > this.maxPayloadSize) {
      requirePayloadSize(bytes, this.maxPayloadSize, `payload of task "${kind.type}"`);
    }
    kind.checkLimitKey?.(bytes);
    const { repeat } = settings;
    const own = repeat && this.repeating(kind, repeat, payload, bytes, now, delayedTo);
    const request = this.request(kind, bytes, delayedTo, now, own, kind.fairness?.(payload));
    if (own?.repeat) return prepared(request, now, delayedTo, repeat!.option);
    if (kind.links !== undefined) return linked(request, kind.links, payload, now, delayedTo);
    return prepared(request, now, delayedTo);
  }

  /** Once per type: to search every payload would cost more than to encode it. */
  private searchLoss({ type, codec }: TaskKind, payload: unknown): void {
    if (this.searched.size >= MAX_SEARCHED) return;
    this.searched.add(type);
    const loss = codec === jsonCodec ? findJsonLoss(payload, !this.defined.has(type)) : undefined;
    if (loss) this.notices.onLoss!(type, loss);
  }

  private noteQueue(queue: string): void {
    this.lastQueue = queue;
    this.notices.onQueue?.(queue);
  }

  private kindOfType(type: string): TaskKind {
    const { defaults: settings, codec } = this;
    const nothing = { links: undefined, key: undefined, acknowledge: undefined, fairness: undefined };
    return { type: checkedType(type), settings, codec, ...nothing, checkLimitKey: undefined };
  }

  private kindOfDefinition(task: TaskDefinition): TaskKind {
    if (typeof task !== 'object' || task === null) {
      throw new InvalidTaskError(
        `a task must be a type name or a task definition, not ${describe(task)}${circleHint(task)}`,
      );
    }
    let kind = this.kinds.get(task);
    if (!kind) {
      refuseWorkflow(task);
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
    if (this.notices.onLoss && this.defined.size < MAX_SEARCHED) this.defined.add(type);
    const kind = { type: checkedType(type), settings, codec, ...further, checkLimitKey };
    checkRepeat(kind.type, settings, kind.links);
    return kind;
  }

  private repeating(
    { type, settings, key }: TaskKind,
    repeat: RepeatSettings,
    payload: unknown,
    bytes: Buffer | undefined,
    now: number,
    delayedTo: number | undefined,
  ): Repeating {
    requireRepeatKey(type, repeat, key);
    const keys = this.keyspace.queue(settings.queue);
    return repeating(type, key, repeat, { payload, bytes, keys, now, delayedTo });
  }

  private request(
    { type, settings }: TaskKind,
    bytes: Buffer | undefined,
    delayedTo: number | undefined,
    now: number,
    own: Repeating | undefined,
    turn: Readonly<Record<string, string>> | undefined,
  ): EnqueueRequest | RepeatRequest {
    const { queue, timeout, deadline, unique } = settings;
    const given = settings.expiresIn === 0 ? settings.headers : expiringHeaders(type, settings, delayedTo ?? now);
    const headers = turn ? { ...given, ...turn } : given;
    const id = settings.taskId ?? own?.id;
    const message = {
      type,
      payload: bytes ?? NO_PAYLOAD,
      id: id ?? newTaskId(now),
      queue,
      maxRetry: settings.maxRetry,
      retried: 0,
      errorMsg: '',
      timeout: timeout === 0 && deadline === 0 ? DEFAULT_TIMEOUT_SECONDS : timeout,
      deadline,
      uniqueKey: own ? own.uniqueKey : unique === 0 ? '' : this.keyspace.queue(queue).unique(type, bytes),
      lastFailedAt: 0,
      retention: own ? Math.max(settings.retention, own.retention) : settings.retention,
      completedAt: 0,
      groupKey: settings.group,
      headers: own?.headers ? { ...headers, ...own.headers } : headers,
    };
    const processAt = delayedTo === undefined ? undefined : ceilSeconds(delayedTo);
    const lockFor = unique === 0 ? undefined : ceilSeconds((delayedTo ?? now) + unique - now);
    return {
      message,
      processAt,
      uniqueTtl: own ? own.uniqueTtl : lockFor,
      madeId: id === undefined,
      repeat: own?.repeat,
    };
  }
}

/**
 * The headers of a task that expires. @param from milliseconds since the epoch
 *
 * @throws InvalidTaskError for a task of a group: no server claims it
 */
function expiringHeaders(type: string, { headers, expiresIn, onExpiry, group }: TaskSettings, from: number) {
  if (group !== '') {
    throw new InvalidTaskError(
      `task "${type}" has expiresIn and group "${group}": a task in a group never runs alone, so it cannot expire; ` +
        'leave one of them out, or give the task that the aggregator makes expiresIn',
    );
  }
  return { ...headers, [EXPIRY_HEADER]: expiryText({ at: Math.ceil(from + expiresIn), policy: onExpiry }) };
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

const checkedType = (type: unknown): string => name(type, 'task typename', 'task typename cannot be empty');

function encodePayload({ type, codec }: TaskKind, payload: unknown): Buffer | undefined {
  let bytes: Uint8Array | undefined;
  try {
    bytes = codec.encode(payload);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new InvalidTaskError(`payload of task "${type}" cannot be encoded: ${reason}`, { cause: error });
  }
  if (bytes === undefined || Buffer.isBuffer(bytes)) return bytes;
  if (ArrayBuffer.isView(bytes)) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  throw new InvalidTaskError(
    `codec of task "${type}" returned ${describe(bytes)}; encode() must return bytes or undefined`,
  );
}

/** Its function gets what a handler would: it is for the payload as it is decoded. */
function limitKeyCheck(type: string, codec: PayloadCodec, limits: TaskLimits | undefined): TaskKind['checkLimitKey'] {
  if (!limits?.limitBy) return undefined;
  const limitBy = (payload: unknown) => limits.limitBy!(payload);
  return (bytes) => void limitKeyOf(limitBy, codec.decode(bytes ?? NO_PAYLOAD), type, InvalidTaskError);
}
