import { decodeTaskMessage, encodeTaskMessage } from '../../wire/codec.js';
import type { TaskMessage } from '../../wire/message.js';
import { WAITING_GROUP } from '../../wire/keys.js';
import type { StoredState, TaskState } from '../../wire/states.js';
import type { AwaitedEvent, Lease, LeasedTask } from '../broker.js';
import type { StoredHold, StoredTask } from '../inspection.js';
import type { FiringStatus } from '../scheduling.js';
import { fairnessOf } from '../../wire/fairness.js';
import { Counter } from './counters.js';
import { FairPending } from './fair-pending.js';
import { LinkedQueue } from './linked-queue.js';
import type { WaitRecord } from './links/place.js';
import { Locks } from './locks.js';
import { type RecordedNotes, storedNotesOf } from './note-list.js';
import { SortedSet } from '../sorted-set.js';
import { Starts } from './starts.js';

/**
 * The task hash. The message is stored encoded, so that it is returned exactly as Redis would
 * return it.
 */
export interface TaskRecord {
  msg: Buffer;
  /** As Redis stores it: see stateOf. */
  state: StoredState;
  /** Milliseconds since the epoch. */
  pendingSince: number | undefined;
  /** The full name of the lock, when the task was created with one. */
  uniqueKey: string | undefined;
  /**
   * The hash field with which a forwarded task joins its group; the group in the message does not
   * count.
   */
  group: string | undefined;
  result: Buffer | undefined;
  /** Counts the tasks of all queues in the order in which they were enqueued. */
  readonly arrival: number;
  /** Counts the tasks in the order in which they were last claimed: the order of Redis' list `active`. */
  turn?: number;
  /**
   * Since when it waits in a waitlist, as Redis orders it, and until when (Unix seconds) it is in
   * `retry`.
   */
  waits?: { readonly since: number; readonly waitEnd: number; readonly waitlist: string };
  /** What it waits for, or has waited for: see Wait. */
  after?: WaitRecord | undefined;
  /** When it starts at the latest, if it is debounced; Unix seconds. */
  startBy?: number | undefined;
  /** What was stored of the steps of its handler, and the signals for it, by name. */
  steps?: {
    readonly checkpoints: Map<string, Buffer>;
    readonly signals: Map<string, Buffer[]>;
    readonly answers: Map<string, Buffer>;
  };
  /** What ends its sleep. */
  awaits?: readonly AwaitedEvent[];
  /** What its handler has said. */
  notes?: RecordedNotes;
  /** The history of its attempts: the entries from the nth on. */
  attempts?: { first: number; readonly texts: string[] };
  /** Whether a newer task has taken its place while it ran. */
  supersededBy?: string;
}

/** What the task has of the steps of its handler, to be changed. */
export const stepsOf = (record: TaskRecord): NonNullable<TaskRecord['steps']> =>
  (record.steps ??= { checkpoints: new Map(), signals: new Map(), answers: new Map() });

/** Whether what a sleep waits for is there. */
export const hasCome = ({ steps }: TaskRecord, event: AwaitedEvent): boolean =>
  'answer' in event
    ? steps?.answers.has(event.answer) === true
    : (steps?.signals.get(event.signal)?.length ?? 0) >= event.n;

/** Tasks claimed for one aggregation. */
export interface StoredSet {
  readonly group: string;
  readonly members: SortedSet;
  /** Unix seconds. */
  readonly deadline: number;
}

/**
 * How far an entry has got. Times are Unix seconds; `expiresAt` is milliseconds since the epoch.
 */
export interface StoredSchedule {
  handledUntil: number;
  spec: string;
  lastFiredAt: number | undefined;
  attempt: string | undefined;
  status: FiringStatus | undefined;
  task: string | undefined;
  /** Since when it is paused; Unix seconds, as `resumedAt`. */
  pausedAt: number | undefined;
  /** When its last pause ended. */
  resumedAt: number | undefined;
  expiresAt: number;
}

/** All that is stored for one queue: the data structures of wire-protocol section 1.2, in process. */
export class QueueStore {
  readonly tasks = new Map<string, TaskRecord>();
  pending: LinkedQueue = new LinkedQueue();
  /**
   * The active tasks and the ends of their leases: without dangling ids, Redis' two sets are one.
   */
  readonly lease = new SortedSet();
  readonly scheduled = new SortedSet();
  /** The tasks that are held, by the start of their wait in microseconds: all of them are in `retry`. */
  readonly held = new SortedSet();
  readonly retry = new RetrySet(this.held);
  readonly archived = new SortedSet();
  readonly completed = new SortedSet();
  readonly groups = new Map<string, SortedSet>();
  /** The tasks that wait for others, by the end of their wait in Unix seconds: WAITING_GROUP. */
  readonly waiting = new SortedSet();
  /** By the name of their key. */
  readonly sets = new Map<string, StoredSet>();
  readonly locks = new Locks();
  /** By lock the task that another one follows: see `latest`. */
  readonly followed = new Locks();
  /** The tasks that wait for a limit, by waitlist: see TaskRecord.waits. */
  readonly waitlists = new Map<string, SortedSet>();
  /** By periodic entry. */
  readonly schedules = new Map<string, StoredSchedule>();
  readonly processed = new Counter();
  readonly failed = new Counter();
  /** Whether a task was ever enqueued: then the queue is listed. */
  listed = false;
  private turns = 0;
  private readonly startsByWindow = new Map<number, Starts>();
  private pauseTime: number | undefined;
  private pauseChanges = 0;

  /** @param nextArrival numbers the tasks of all queues */
  constructor(readonly nextArrival: () => number) {}

  /** Unix seconds of the pause; `undefined` = not paused. */
  get pausedAt(): number | undefined {
    return this.pauseTime;
  }

  set pausedAt(time: number | undefined) {
    this.pauseTime = time;
    this.pauseChanges++;
  }

  /** @param window milliseconds */
  starts(window: number): Starts {
    let starts = this.startsByWindow.get(window);
    if (!starts) this.startsByWindow.set(window, (starts = new Starts(window)));
    return starts;
  }

  /** Its tasks take turns by their keys from now on. */
  beFair(): void {
    if (this.pending instanceof FairPending) return;
    const before = this.pending;
    this.pending = new FairPending({
      shareOf: (id) => fairnessOf(readMessage(this.tasks.get(id)!).headers),
      isRunning: (id) => this.lease.score(id) !== undefined,
    });
    this.pending.changes = before.changes + 1;
    for (const id of before) this.pending.pushBack(id);
  }

  /** Takes the next task of `pending`; `undefined` when no task may be taken. @param now milliseconds since the epoch */
  popNext(now: number, allowance: number): string | undefined {
    return this.pending instanceof FairPending ? this.pending.popNext(now, allowance) : this.pending.popFront();
  }

  /** Tasks that a consumer could claim now. */
  get backlog(): number {
    return this.pauseTime === undefined ? this.pending.size : 0;
  }

  /** Unix seconds of the next scheduled or retried task. */
  get nextDue(): number | undefined {
    const next = Math.min(this.scheduled.first()?.score ?? Infinity, this.retry.first()?.score ?? Infinity);
    return next === Infinity ? undefined : next;
  }

  /** `pending` and `paused` have not changed while this is the same. */
  get pendingChanges(): number {
    return this.pending.changes + this.pauseChanges;
  }

  get delayedChanges(): number {
    return this.scheduled.changes + this.retry.changes;
  }

  addPending(id: string, record: TaskRecord, now: number): void {
    record.state = 'pending';
    record.pendingSince = now;
    this.pending.pushBack(id);
  }

  /** Ends the sleep of a task, if something has come that it waits for. */
  endSleep(id: string, record: TaskRecord, now: number): void {
    if (record.state !== 'scheduled' || !record.awaits?.some((event) => hasCome(record, event))) return;
    this.scheduled.delete(id);
    delete record.awaits;
    this.addPending(id, record, now);
  }

  waitlist(name: string): SortedSet {
    let waitlist = this.waitlists.get(name);
    if (!waitlist) this.waitlists.set(name, (waitlist = new SortedSet()));
    return waitlist;
  }

  /** @param joinedAt Unix seconds */
  addToGroup(id: string, record: TaskRecord, group: string, joinedAt: number): void {
    record.state = 'aggregating';
    let members = this.groups.get(group);
    if (!members) this.groups.set(group, (members = new SortedSet()));
    members.set(id, joinedAt);
  }

  /** Makes a task active, which has left `pending` already. */
  claim(queue: string, id: string, expiresAt: number, withSince = false): LeasedTask | undefined {
    const record = this.tasks.get(id);
    if (!record) return undefined;
    const { pendingSince } = record;
    record.state = 'active';
    record.pendingSince = undefined;
    record.turn = ++this.turns;
    this.lease.set(id, expiresAt);
    const leased = { lease: { queue, id, expiresAt }, message: readMessage(record) };
    return withSince && pendingSince !== undefined ? { ...leased, pendingSince: Math.floor(pendingSince) } : leased;
  }

  /** The task, if this lease is still the last one. */
  leased(lease: Lease): TaskRecord | undefined {
    const score = this.lease.score(wellFormed(lease.id));
    if (score === undefined || (score !== lease.expiresAt && score !== lease.renewing)) return undefined;
    return this.tasks.get(wellFormed(lease.id));
  }

  describe(id: string): StoredTask | undefined {
    const record = this.tasks.get(id);
    return (
      record && {
        message: readMessage(record),
        state: this.stateOf(id, record),
        nextProcessAt: this.scheduled.score(id) ?? this.retry.score(id) ?? this.waiting.score(id),
        pendingSince: record.pendingSince === undefined ? undefined : Math.floor(record.pendingSince),
        held: this.holdOf(id),
        result: record.result && Buffer.from(record.result),
        ...(record.notes && { notes: storedNotesOf(record.notes) }),
      }
    );
  }

  /** The state as users see it. */
  stateOf(id: string, { state, group }: TaskRecord): TaskState {
    if (state === 'aggregating' && group === WAITING_GROUP) return 'waiting';
    return state === 'retry' && this.held.score(id) !== undefined ? 'held' : state;
  }

  private holdOf(id: string): StoredHold | undefined {
    const since = this.held.score(id);
    return since === undefined
      ? undefined
      : { since: Math.floor(since / 1000), waitlist: this.tasks.get(id)?.waits?.waitlist ?? '' };
  }
}

/** Who leaves `retry`, or is there for another time, is no longer held. */
class RetrySet extends SortedSet {
  constructor(private readonly held: SortedSet) {
    super();
  }

  override set(id: string, score: number): void {
    super.set(id, score);
    this.held.delete(id);
  }

  override delete(id: string): boolean {
    this.held.delete(id);
    return super.delete(id);
  }
}

/** A new object with bytes of its own, so that the reader cannot change the stored task. */
export const readMessage = (record: TaskRecord): TaskMessage => decodeTaskMessage(Buffer.from(record.msg));

/**
 * A copy, as the encoder's memory is shared by messages, and one waiting task would keep all of it.
 */
export const storedMessage = (message: TaskMessage): Buffer => Buffer.from(encodeTaskMessage(message));

const SURROGATE = /[\ud800-\udfff]/;

/** The text as Redis would return it: a lone surrogate has no UTF-8 form and becomes U+FFFD. */
export const wellFormed = (text: string): string => (SURROGATE.test(text) ? Buffer.from(text).toString() : text);
