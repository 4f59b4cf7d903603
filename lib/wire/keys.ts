import { hash } from 'node:crypto';
import { type LockKind, lockName } from './lock-names.js';
import { PlaceKeys } from './place-keys.js';

/** asynq's key prefix. Any other is a namespace of ours that Go does not see. */
export const DEFAULT_KEY_PREFIX = 'asynq';

/** The group that holds tasks that wait for others. No list of groups names it, so no aggregator takes them. */
export const WAITING_GROUP = 'asynq:waiting';

/** The group that holds the tasks of one key of a fair queue. No list of groups names it, so no aggregator takes them. */
export const FAIR_GROUP_PREFIX = 'asynq:fair:';

/** The kinds of keys that end in a name from outside. */
const NAMED_KEY =
  /^(?:t|g|unique|waiting|periodic|fair_running|fair_rate:\d+|early|followed|mark|waiters|watchers|run|batch|part|offer):/;

/**
 * The keys of one queue (wire-protocol section 1.2). All share the hash tag `{queue}`.
 *
 * Names of queues, tasks and groups have no braces here, as a brace would end the tag: the keys of
 * a queue `mail}:eu` begin like those of `mail`, and a task `x}:pending` has the key of another
 * queue's list. asynq accepts such names, so they may exist.
 */
export class QueueKeys extends PlaceKeys {
  readonly taskPrefix: string;
  readonly groupPrefix: string;
  readonly pending: string;
  readonly active: string;
  readonly lease: string;
  readonly scheduled: string;
  readonly retry: string;
  readonly archived: string;
  readonly completed: string;
  readonly groups: string;
  readonly aggregationSets: string;
  readonly paused: string;
  readonly processed: string;
  readonly failed: string;
  readonly schedulePrefix: string;
  /** Ours, unknown to Go: when scheduled tasks will join which groups. */
  readonly delayedGroups: string;
  /** Ours: the names of the waitlists in which tasks wait. */
  readonly waitlists: string;
  /** Ours: the tasks in waitlists, by the start of their wait in microseconds. Some may be left that are no longer held. */
  readonly held: string;
  /** Ours: the highest number of a row that each sender of an outbox has brought. It outlives the queue. */
  readonly senders: string;
  /** Ours: the tasks that wait for others, by the end of their wait (WAITING_GROUP). No list of groups names it. */
  readonly waitingTasks: string;
  /** Ours: how the names begin of what says which task a waiting one follows (`latest`), by the name of their lock. */
  readonly followedPrefix: string;
  /** Ours: the keys of a fair queue of which tasks may be taken, by the turns they have had: lua/shared/fair.lua. */
  readonly fairRing: string;
  /** Ours: the keys that a limit of their own holds back, by the time of the next look in milliseconds. */
  readonly fairHeld: string;
  /** Ours: the shares of keys that are not the usual ones. */
  readonly fairShares: string;
  /** Ours: the keys of the tasks that hold a slot of their key. */
  readonly fairSlots: string;
  /** Ours: how many tasks wait in lines. */
  readonly fairTotal: string;
  /** How the lines of keys begin: groups that nobody lists. */
  readonly fairLinePrefix: string;
  /** How the sets of tasks begin that hold the slots of a key. */
  readonly fairRunningPrefix: string;
  /** How the counts of starts of keys begin. */
  readonly fairRatePrefix: string;
  /** How the locks of unique tasks begin. */
  readonly lockPrefix: string;

  constructor(prefix: string, queue: string) {
    super(prefix, queue);
    this.taskPrefix = `${this.base}t:`;
    this.groupPrefix = `${this.base}g:`;
    this.pending = `${this.base}pending`;
    this.active = `${this.base}active`;
    this.lease = `${this.base}lease`;
    this.scheduled = `${this.base}scheduled`;
    this.retry = `${this.base}retry`;
    this.archived = `${this.base}archived`;
    this.completed = `${this.base}completed`;
    this.groups = `${this.base}groups`;
    this.aggregationSets = `${this.base}aggregation_sets`;
    this.paused = `${this.base}paused`;
    this.processed = `${this.base}processed`;
    this.failed = `${this.base}failed`;
    this.schedulePrefix = `${this.base}periodic:`;
    this.delayedGroups = `${this.base}delayed_groups`;
    this.waitlists = `${this.base}waitlists`;
    this.held = `${this.base}held`;
    this.senders = `${this.base}senders`;
    this.followedPrefix = `${this.base}followed:`;
    this.lockPrefix = `${this.base}unique:`;
    this.fairRing = `${this.base}fair`;
    this.fairHeld = `${this.base}fair_held`;
    this.fairShares = `${this.base}fair_shares`;
    this.fairSlots = `${this.base}fair_slots`;
    this.fairTotal = `${this.base}fair_total`;
    this.fairLinePrefix = `${this.groupPrefix}${FAIR_GROUP_PREFIX}`;
    this.fairRunningPrefix = `${this.base}fair_running:`;
    this.fairRatePrefix = `${this.base}fair_rate:`;
    this.waitingTasks = `${this.groupPrefix}${WAITING_GROUP}`;
  }

  /**
   * Whether a key that begins like those of this queue belongs to it. The keys of other such queues
   * have a brace after that, and ours have one only in a name.
   *
   * @param others all queues: they decide who owns a key with a brace in a name
   */
  owns(key: string, others: readonly QueueKeys[]): boolean {
    if (!key.startsWith(this.base)) return false;
    const rest = key.slice(this.base.length);
    if (!rest.includes('}')) return true;
    if (!NAMED_KEY.test(rest)) return false;
    return !others.some(({ base }) => base.length > this.base.length && key.startsWith(base));
  }

  task(id: string): string {
    return this.taskPrefix + id;
  }

  group(name: string): string {
    return this.groupPrefix + name;
  }

  /** The ids claimed for one aggregation. @param setId a UUID */
  aggregationSet(group: string, setId: string): string {
    return `${this.group(group)}:${setId}`;
  }

  /**
   * Ours, unknown to Go: how many tasks started recently, for a limit per window.
   *
   * @param window milliseconds
   */
  rate(window: number): string {
    return `${this.base}rate:${window}`;
  }

  /** Ours, unknown to Go: the tasks that wait for a limit, by the start of their wait. */
  waiting(line: string): string {
    return `${this.base}waiting:${line}`;
  }

  processedOn(day: string): string {
    return `${this.processed}:${day}`;
  }

  failedOn(day: string): string {
    return `${this.failed}:${day}`;
  }

  /** Ours, unknown to Go: the progress of a periodic entry. */
  schedule(entry: string): string {
    return this.schedulePrefix + entry;
  }

  /**
   * The lock of a unique task. `undefined` is Go's nil payload, which differs from an empty one
   * only here.
   */
  unique(type: string, payload: Uint8Array | undefined): string {
    // In one call: a hash object that is made, fed and read takes twice the time.
    return `${this.lockPrefix}${type}:${payload === undefined ? '' : hash('md5', payload)}`;
  }

  /**
   * Ours: the lock of a task that is not unique by its payload. Go honours it, as it takes the name from the message.
   *
   * @param texts a key, or names of fields and a hash
   */
  lock(type: string, kind: LockKind, texts: readonly string[]): string {
    return this.lockPrefix + lockName(type, kind, texts);
  }
}

/** Whether the lock that a message names only says which task of its key is the last. */
export const namesLast = ({ uniqueKey }: { uniqueKey: string }): boolean => uniqueKey.endsWith(':last');

/** Ours, unknown to Go: the keys and channels of servers that do the same for the same queues. All keys are in one slot. */
export interface CrewKeys {
  /** How the keys of the seats begin; the number of the seat follows. */
  readonly seats: string;
  /** Which parts were called last. */
  readonly called: string;
  /** Exists while servers without a seat come for one. */
  readonly crowded: string;
  /** The channel that says that a seat is free. */
  readonly freeChannel: string;
  /** How the channels of calls begin; the number of the part follows. */
  readonly partChannels: string;
}

/** The global keys and the pub/sub channel (section 1.1). */
export class Keyspace {
  readonly queues: string;
  readonly servers: string;
  readonly workers: string;
  /** Ours, unknown to Go: the beginning of what servers publish beside their ServerInfo. */
  readonly profiles: string;
  readonly schedulers: string;
  readonly cancel: string;
  /** Ours, unknown to Go: the ids of tasks to be cancelled, by the time of the request. */
  readonly cancellations: string;
  /** The requested outcome of each, by id; in the same slot of a cluster. */
  readonly cancellationDetails: string;
  /** Ours, unknown to Go: the recent events of tasks. */
  readonly eventStream: string;
  /** Ours, unknown to Go: the changes made in the console. */
  readonly auditStream: string;
  /** Ours, unknown to Go: the places that have links. */
  readonly linked: string;
  private readonly schedulerHistoryPrefix: string;
  private readonly byQueue = new Map<string, QueueKeys>();

  constructor(readonly prefix: string = DEFAULT_KEY_PREFIX) {
    this.queues = `${prefix}:queues`;
    this.servers = `${prefix}:servers`;
    this.workers = `${prefix}:workers`;
    this.profiles = `${prefix}:profiles`;
    this.schedulers = `${prefix}:schedulers`;
    this.cancel = `${prefix}:cancel`;
    this.cancellations = `${prefix}:cancellations:{ids}`;
    this.cancellationDetails = `${prefix}:cancellations:{ids}:details`;
    this.eventStream = `${prefix}:events`;
    this.auditStream = `${prefix}:audit`;
    this.linked = `${prefix}:linked`;
    this.schedulerHistoryPrefix = `${prefix}:scheduler_history:`;
  }

  /** @param id a hash of what its servers do, and for which queues */
  crew(id: string): CrewKeys {
    const base = `${this.prefix}:crews:{${id}}:`;
    return {
      seats: `${base}seat:`,
      called: `${base}called`,
      crowded: `${base}crowded`,
      freeChannel: `${base}free`,
      partChannels: `${base}part:`,
    };
  }

  /**
   * The holders of a semaphore of asynq's x/rate. It has no hash tag: in a cluster its name decides
   * the slot.
   */
  semaphore(scope: string): string {
    return `${this.prefix}:sema:${scope}`;
  }

  /** Ours, unknown to Go: which server has tasks of this scope and no token. It expires within seconds. */
  tokenRequest(scope: string): string {
    return `${this.prefix}:sema_request:${scope}`;
  }

  /**
   * Ours, unknown to Go: how many tasks started recently, in all queues, for a limit per window.
   *
   * @param window milliseconds
   */
  starts(scope: string, window: number): string {
    return `${this.prefix}:starts:${window}:${scope}`;
  }

  queue(name: string): QueueKeys {
    let keys = this.byQueue.get(name);
    if (!keys) this.byQueue.set(name, (keys = new QueueKeys(this.prefix, name)));
    return keys;
  }

  server(host: string, pid: number, serverId: string): string {
    return `${this.servers}:{${host}:${pid}:${serverId}}`;
  }

  serverWorkers(host: string, pid: number, serverId: string): string {
    return `${this.workers}:{${host}:${pid}:${serverId}}`;
  }

  /** In the slot of its ServerInfo. */
  serverProfile(host: string, pid: number, serverId: string): string {
    return `${this.profiles}:{${host}:${pid}:${serverId}}`;
  }

  /** @param schedulerId `<host>:<pid>:<uuid>` */
  scheduler(schedulerId: string): string {
    return `${this.schedulers}:{${schedulerId}}`;
  }

  schedulerHistory(entryId: string): string {
    return `${this.schedulerHistoryPrefix}${entryId}`;
  }
}

/** The UTC date that names the daily counters. */
export const utcDay = (milliseconds: number): string => new Date(milliseconds).toISOString().slice(0, 10);
