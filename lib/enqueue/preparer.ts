import type { EnqueueRequest } from '../broker/broker.js';
import type { RepeatRequest } from '../broker/uniqueness.js';
import { ceilSeconds } from '../clock.js';
import { InvalidTaskError } from '../errors.js';
import { jsonCodec, type PayloadCodec } from '../task/codec.js';
import { findJsonLoss, type JsonLoss } from '../task/json-loss.js';
import type { TaskDefinition } from '../task/definition.js';
import type { TaskOptions } from '../task/options.js';
import { requireRepeatKey } from '../task/repeat-checks.js';
import type { RepeatSettings } from '../task/repeats.js';
import { DEFAULT_MAX_PAYLOAD_BYTES, requirePayloadSize } from '../task/payload-size.js';
import type { TaskSettings } from '../task/settings.js';
import { newTaskId } from '../task/task-id.js';
import { describe } from '../validation.js';
import { EXPIRY_HEADER, expiryText } from '../wire/expiry.js';
import { Keyspace } from '../wire/keys.js';
import { linked } from './linked-task.js';
import { prepared, type PreparedTask } from './prepared-task.js';
import { byKey, type Repeating, repeating } from './repeats.js';
import { type CallOptions, NO_PAYLOAD, type TaskKind, TaskKinds } from './task-kinds.js';

/** asynq's timeout of a task with neither timeout nor deadline. */
const DEFAULT_TIMEOUT_SECONDS = 1800;

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

/**
 * Turns a caller's task into a request: merges options, checks everything, encodes the payload.
 * Writes nothing.
 */
export class Preparer {
  private readonly keyspace: Keyspace;
  private readonly kinds: TaskKinds;
  /** The types whose first payload was searched. */
  private readonly searched = new Set<string>();
  private lastQueue: string | undefined;

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
    this.keyspace = new Keyspace(keyPrefix);
    this.kinds = new TaskKinds(codec, defaults);
  }

  /** See {@link TaskKinds.of}. @throws InvalidTaskError */
  kindOf(task: string | TaskDefinition, options: CallOptions | undefined): TaskKind {
    return this.kinds.of(task, options);
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
    const loss = codec === jsonCodec ? findJsonLoss(payload, !this.kinds.hasDefinition(type)) : undefined;
    if (loss) this.notices.onLoss!(type, loss);
  }

  private noteQueue(queue: string): void {
    this.lastQueue = queue;
    this.notices.onQueue?.(queue);
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
