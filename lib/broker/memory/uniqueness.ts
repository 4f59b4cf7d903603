import { LAST_COUNTS } from '../../task/repeats.js';
import { decodeTaskMessage } from '../../wire/codec.js';
import type { CancellationRole } from '../cancellation.js';
import { type Caused, WAITING_GROUP } from '../links.js';
import { type Full, takesRoom } from '../enqueue-request.js';
import type {
  LockPage,
  Owner,
  RepeatBounds,
  RepeatReplies,
  RepeatReply,
  RepeatRequest,
  StoredLock,
  UniquenessRole,
} from '../uniqueness.js';
import type { LinkEngine } from './links/engine.js';
import { createTask } from './producer.js';
import { isBeingUndone } from './settlements.js';
import { type QueueStore, readMessage, storedMessage, type TaskRecord, wellFormed } from './queue-store.js';

const UNSTARTED: ReadonlySet<string> = new Set(['pending', 'scheduled', 'retry', 'aggregating']);

/** A request that has been checked, and what is stored where it goes. */
interface Trigger {
  readonly queue: string;
  readonly store: QueueStore;
  readonly request: RepeatRequest;
  readonly id: string;
  readonly msg: Buffer;
  readonly now: number;
  readonly maxPending: number;
}

export class MemoryUniqueness implements UniquenessRole {
  constructor(
    private readonly engine: LinkEngine,
    private readonly cancellation: Pick<CancellationRole, 'publishCancellation'>,
  ) {}

  async enqueue(
    queue: string,
    requests: readonly RepeatRequest[],
    { maxPending = Infinity, acknowledge }: RepeatBounds = {},
  ): Promise<Caused & RepeatReplies> {
    const place = wellFormed(queue);
    return this.engine.cause(place, (store) => {
      const messages = requests.map(({ message }) => storedMessage(message));
      if (requests.length > 0) store.listed = true;
      const { now } = this.engine;
      const replies = requests.map((request, index) => {
        const id = wellFormed(request.message.id);
        return this.apply({ queue: place, store, request, id, msg: messages[index]!, now, maxPending });
      });
      const copies = acknowledge && { replicas: acknowledge.replicas, disk: acknowledge.disk, isEnough: true };
      return { parcels: [], replies, copies };
    });
  }

  async release(queue: string, lock: string, id: string): Promise<boolean> {
    const { locks } = this.engine.state.store(queue);
    if (locks.holder(wellFormed(lock), this.engine.now) !== wellFormed(id)) return false;
    this.engine.state.change(queue, (store, now) => store.locks.release(wellFormed(lock), wellFormed(id), now));
    return true;
  }

  async findSuperseded(queue: string, ids: readonly string[]): Promise<readonly (string | undefined)[]> {
    this.engine.state.assertOpen();
    const { tasks } = this.engine.state.store(queue);
    return ids.map((id) => {
      const record = tasks.get(wellFormed(id));
      return record?.state === 'active' ? record.supersededBy : undefined;
    });
  }

  async describe(queue: string, locks: readonly string[]): Promise<readonly StoredLock[]> {
    const store = this.engine.state.store(queue);
    const held = store.locks.held(this.engine.now);
    return locks.flatMap((lock) => {
      const found = held[wellFormed(lock)];
      return found ? { lock, owner: ownerOf(store, found.owner, true), expiresIn: found.expiresIn } : [];
    });
  }

  async list(queue: string): Promise<LockPage> {
    this.engine.state.assertOpen();
    const held = this.engine.state.store(queue).locks.held(this.engine.now);
    return { locks: await this.describe(queue, Object.keys(held)), cursor: undefined };
  }

  private apply(trigger: Trigger): RepeatReply | Full {
    const { store, request, id, now } = trigger;
    const { policy, lock } = request.repeat;
    if (policy === 'once') {
      if (store.tasks.has(id)) return { status: 'existing', owner: ownerOf(store, id, true) };
      return this.create(trigger);
    }
    let holder = store.locks.holder(wellFormed(lock), now);
    let owner = holder === undefined ? undefined : store.tasks.get(holder);
    if (policy === 'latest' && !isLive(owner)) {
      const runner = findRunner(store, wellFormed(lock), now);
      if (runner !== undefined) [holder, owner] = [runner, store.tasks.get(runner)];
    }
    const replaces = LAST_COUNTS.has(policy);
    const undoes = owner !== undefined && isBeingUndone(owner);
    if (holder !== undefined) {
      if (replaces && owner && !undoes && isUnstarted(owner)) return replace(trigger, holder, owner);
      if (policy === 'existing') return { status: 'existing', owner: ownerOf(store, holder, true) };
      if (!replaces || policy === 'replace') return { status: 'duplicate', owner: ownerOf(store, holder, false) };
    }
    if (store.tasks.has(id)) return { status: 'conflict', owner: { id, state: undefined } };
    if (owner?.state !== 'active') return this.create(trigger);
    if (policy === 'latest') return this.follow(trigger, holder!);
    const reply = this.create(trigger);
    if ('status' in reply && policy === 'supersede' && !undoes) this.supersede(holder!, owner, id);
    return reply;
  }

  private create(trigger: Trigger): RepeatReply | Full {
    const { store, request, id, msg, now, maxPending } = trigger;
    const pending = store.pending.size;
    if (pending >= maxPending && takesRoom(request)) return { pending };
    createTask(store, { ...request, uniqueTtl: undefined } as RepeatRequest, msg, now);
    takeLock(trigger);
    if (request.repeat.policy === 'debounce') store.tasks.get(id)!.startBy = request.repeat.limit;
    return { status: 'enqueued' };
  }

  private supersede(id: string, active: TaskRecord, by: string): void {
    active.supersededBy = by;
    void this.cancellation.publishCancellation(id);
  }

  /** It waits until the active one has ended, however it ends. */
  private follow(trigger: Trigger, active: string): RepeatReply {
    const { queue, request, id, msg } = trigger;
    const deadline = request.repeat.limit!;
    const after = {
      edges: [{ from: queue, of: active, state: 'waiting' as const }],
      onFailure: 'run' as const,
      onTimeout: 'run' as const,
      deadline,
      processAt: request.processAt,
    };
    this.engine.watch(queue, active, { k: 'w', to: queue, id, n: 0, d: deadline });
    this.engine.retain(queue, active);
    const unlocked = { ...request, uniqueTtl: undefined } as RepeatRequest;
    this.engine.create(queue, { request: unlocked, watchers: [], after }, msg);
    takeLock(trigger);
    const { lock, ttl } = request.repeat;
    trigger.store.followed.take(wellFormed(lock), active, ttl, trigger.now);
    return { status: 'enqueued', owner: { id, state: 'waiting', processAt: deadline } };
  }
}

/** A member of a group becomes part of another task, which may have read its payload already. */
const isUnstarted = ({ state, group }: TaskRecord): boolean =>
  UNSTARTED.has(state) && (!group || group === WAITING_GROUP || state === 'pending' || state === 'retry');

const isLive = (task: TaskRecord | undefined): boolean =>
  task !== undefined && (task.state === 'active' || isUnstarted(task));

/** The task of this lock that runs, or has not started, if there is one behind that which follows it: that one may be moved by hand. */
function findRunner(store: QueueStore, lock: string, now: number): string | undefined {
  const id = store.followed.holder(lock, now);
  const record = id === undefined ? undefined : store.tasks.get(id);
  return isLive(record) && record?.uniqueKey === lock ? id : undefined;
}

/** Whether a task waits for one that is over: nobody else would notice it until its time is over. */
function waitsForNothing(store: QueueStore, { state, group, after }: TaskRecord): boolean {
  if (state !== 'aggregating' || group !== WAITING_GROUP) return false;
  const [edge] = after?.edges ?? [];
  return !edge || !isLive(store.tasks.get(edge.of));
}

function takeLock({ store, request, id, now }: Trigger): void {
  const { lock, ttl } = request.repeat;
  if (lock === '') return;
  store.locks.take(wellFormed(lock), id, ttl, now);
  store.tasks.get(id)!.uniqueKey = wellFormed(lock);
}

function replace({ store, request, msg, now }: Trigger, id: string, owner: TaskRecord): RepeatReply {
  const { policy, lock, ttl, limit } = request.repeat;
  const debounces = policy === 'debounce';
  const startBy = debounces && owner.state !== 'retry' ? (owner.startBy ?? limit) : limit;
  let at = request.processAt;
  if (debounces && startBy !== undefined && at !== undefined) at = Math.min(at, startBy);
  owner.msg = storedMessage({ ...decodeTaskMessage(msg), id });
  if (debounces && startBy !== undefined) owner.startBy = startBy;
  store.locks.take(wellFormed(lock), id, ttl, now);
  if (policy === 'latest' && waitsForNothing(store, owner)) {
    store.waiting.delete(id);
    owner.group = undefined;
    place(store, id, owner, at, now);
  } else if (leave(store, id, owner, at, debounces)) place(store, id, owner, at, now);
  return { status: 'replaced', owner: ownerOf(store, id, false) };
}

function place(store: QueueStore, id: string, owner: TaskRecord, at: number | undefined, now: number): void {
  if (at === undefined) return store.addPending(id, owner, now);
  owner.state = 'scheduled';
  owner.pendingSince = undefined;
  store.scheduled.set(id, at);
}

/** Takes a task out of its list, if its new request belongs elsewhere. */
function leave(store: QueueStore, id: string, owner: TaskRecord, at: number | undefined, debounces: boolean): boolean {
  switch (owner.state) {
    case 'pending': // its wait is over
      return at !== undefined && !debounces && store.pending.remove(id);
    case 'scheduled':
      return store.scheduled.delete(id);
    case 'retry': // or it waits for a limit of its handler, and keeps its position
      if (at === undefined && store.held.score(id) !== undefined) return false;
      return store.retry.delete(id);
    default:
      return false;
  }
}

function ownerOf(store: QueueStore, id: string, withMessage: boolean): Owner {
  const record = store.tasks.get(id);
  if (!record) return { id, state: undefined };
  const processAt = store.scheduled.score(id) ?? store.retry.score(id) ?? store.waiting.score(id);
  return { id, state: store.stateOf(id, record), message: withMessage ? readMessage(record) : undefined, processAt };
}
