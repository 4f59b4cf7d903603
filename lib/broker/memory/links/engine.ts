import { InvalidTaskError } from '../../../errors.js';
import type { EnqueueRequest, EnqueueStatus } from '../../enqueue-request.js';
import { memberOf } from '../../batches.js';
import { isLinked, type LinkedRequest, type LinkNews, TECHNICAL_RETENTION, type Watcher } from '../../links.js';
import type { WaitEnd } from '../../../task/links.js';
import type { MemoryState } from '../memory-state.js';
import { createTask } from '../producer.js';
import type { QueueStore } from '../queue-store.js';
import { readMessage, storedMessage, wellFormed } from '../queue-store.js';
import type { Bodies, Body, Kind, NewTask } from './bodies.js';
import { newTask } from './new-task.js';
import { Place, type WaitRecord } from './place.js';

const NO_BYTES = Buffer.alloc(0);

/** A task of a place has ended. */
export interface Ended {
  readonly place: string;
  readonly id: string;
  readonly ok: boolean;
  /** Why it failed, else empty. */
  readonly reason: string;
  /** What a task that succeeded has returned. */
  readonly result: Buffer | undefined;
}

/** Applies a body to a place. */
export type Handler<K extends Kind> = (place: string, body: Bodies[K], data: Buffer) => void;

/** Finds what has ended without a notice, in one pass over a place. Returns how much it has settled. */
export type Keeper = (place: string) => number;

/**
 * Links in process. Places send each other bodies, as they send parcels in Redis; here a body is
 * applied in the same step, from a queue: nothing is called within a call, however long a chain is.
 */
export class LinkEngine {
  /** By the kind of body. */
  readonly on: { [K in Kind]?: Handler<K> } = {};
  /** By the kind of watcher. */
  readonly notifiers: { [K in Watcher['k']]?: (watcher: Extract<Watcher, { k: K }>, ended: Ended) => void } = {};
  /** Called for every new task that waits. */
  onWait: (place: string, id: string, after: WaitRecord) => void = () => undefined;
  /** Called for every task that ends in a place with links, watched or not. */
  readonly endings: ((ended: Ended) => void)[] = [];
  /** By the first word of a timer; gets the rest of it. */
  readonly onTimer: Record<string, (place: string, about: string) => void> = {};
  /** Called by every pass. */
  readonly keepers: Keeper[] = [];
  /** Whether a place has something to keep besides links, waits and timers. */
  readonly holders: ((place: string) => boolean)[] = [];
  /** Whether runs or batches live in a place. */
  readonly homes: ((place: string) => boolean)[] = [];
  private readonly places = new Map<string, Place>();
  private news: LinkNews[] = [];
  private bodies: { readonly to: string; readonly body: Body; readonly data: Buffer }[] = [];

  constructor(readonly state: MemoryState) {
    state.placesWithLinks = () => this.names();
    state.keepsMore = (queue) => this.homes.some((isHome) => isHome(queue));
  }

  /** Milliseconds since the epoch. */
  get now(): number {
    return this.state.now;
  }

  /** The place, which is created when it is missing. */
  place(name: string): Place {
    let place = this.places.get(name);
    if (!place) {
      this.places.set(name, (place = new Place()));
      for (const listener of this.state.listeners) listener.notePlaces();
    }
    return place;
  }

  find(name: string): Place | undefined {
    return this.places.get(name);
  }

  /** The places that have something to keep. */
  names(): string[] {
    return [...this.places.keys()].filter((name) => !this.isEmpty(name));
  }

  isEmpty(name: string): boolean {
    const place = this.places.get(name);
    const isKept = (place?.links.size ?? 0) + (place?.timers.size ?? 0) + this.state.store(name).waiting.size > 0;
    return !isKept && !this.holders.some((holds) => holds(name));
  }

  /** When the first timer is due, in Unix seconds. */
  nextTimer(): number | undefined {
    const times = [...this.places.values()].flatMap(({ timers }) => [...timers.values()]);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  clear(): void {
    this.places.clear();
  }

  /** The queue of a place, within {@link change}: who waits for its tasks learns of it. */
  store(queue: string): QueueStore {
    return this.state.touch(queue);
  }

  /** One step: does the work, then what it has caused in any place. */
  change<T>(place: string, work: (store: QueueStore, now: number) => T): T {
    return this.state.change(place, (store, now) => {
      try {
        const result = work(store, now);
        this.work();
        return result;
      } finally {
        this.bodies = [];
      }
    });
  }

  /** The same for work that may end a wait, a run or a batch: adds what has happened to its reply. */
  cause<T>(place: string, work: (store: QueueStore, now: number) => T): T {
    this.news = []; // of a step that has thrown
    const reply = this.change(place, work);
    const news = this.takeNews();
    return news.length > 0 ? { ...reply, news } : reply;
  }

  /** What has happened since the last call. */
  takeNews(): LinkNews[] {
    const { news } = this;
    this.news = [];
    return news;
  }

  note(news: LinkNews): void {
    this.news.push(news);
  }

  /** Sends a body to a place; {@link work} applies it. */
  post<K extends Kind>(to: string, kind: K, body: Bodies[K], data: Buffer = NO_BYTES): void {
    this.bodies.push({ to, body: { kind, ...body } as unknown as Body, data });
  }

  /** Applies all that has been posted, and what that causes. */
  work(): void {
    for (let at = 0; at < this.bodies.length; at++) {
      const { to, body, data } = this.bodies[at]!;
      const handler = this.on[body.kind] as Handler<Kind> | undefined;
      handler?.(to, body, data);
    }
    this.bodies = [];
  }

  /** Whether the end of a task of this queue may concern others. */
  isLinked(queue: string): boolean {
    const place = this.places.size > 0 ? this.places.get(wellFormed(queue)) : undefined;
    return place !== undefined && place.links.size + place.parts.size > 0;
  }

  /** The watchers of a task that was claimed. */
  watchersOf(queue: string, id: string): readonly Watcher[] | undefined {
    const place = this.places.get(queue);
    const batch = place && place.parts.size > 0 ? memberOf(id)?.batch : undefined;
    const home = batch === undefined ? undefined : place?.parts.get(batch);
    if (batch !== undefined && home !== undefined) return [{ k: 'b', to: home, batch }];
    const watchers = place?.links.get(id)?.watchers;
    return watchers && [...watchers.values()];
  }

  /** A task has ended: notifies its watchers. One that failed and is still there (archived) may end again. */
  ended(place: string, id: string, ok: boolean, reason: string, result?: Buffer): void {
    const { links, parts } = this.places.get(place) ?? {};
    if (!links || !parts || links.size + parts.size === 0) return;
    const ended: Ended = { place, id, ok, reason, result };
    const watched = links.get(id);
    for (const watcher of watched?.watchers.values() ?? []) this.notify(watcher, ended);
    if (watched && !ok && this.store(place).tasks.has(id)) watched.notified = true;
    else links.delete(id);
    for (const ending of this.endings) ending(ended);
  }

  /** Notifies one watcher. */
  notify(watcher: Watcher, ended: Ended): void {
    const notifier = this.notifiers[watcher.k] as ((watcher: Watcher, ended: Ended) => void) | undefined;
    notifier?.(watcher, ended);
  }

  /** Registers a watcher, once. */
  watch(place: string, id: string, watcher: Watcher): void {
    const { links } = this.place(place);
    const watchers = links.get(id)?.watchers ?? new Map<string, Watcher>();
    watchers.set(JSON.stringify(watcher), watcher);
    links.set(id, { watchers, notified: false }); // the others are notified again, as this one was not
  }

  /** Creates a task with links in a place; it waits if it is to. `conflict`: there is a task with this id, nothing has changed. */
  create(queue: string, { request, watchers, after }: NewTask, msg: Buffer = this.encode(request)): EnqueueStatus {
    const store = this.store(queue);
    const id = wellFormed(request.message.id);
    const status = createTask(store, request, msg, this.now, after);
    if (status !== 'enqueued') return status;
    for (const watcher of watchers) this.watch(queue, id, watcher);
    if (after) this.onWait(queue, id, after);
    return status;
  }

  /** Enqueues a task, with links or without. */
  enqueue(queue: string, request: LinkedRequest): EnqueueStatus {
    const message = isLinked(request) ? this.encode(request) : storedMessage(request.message);
    this.store(queue).listed = true;
    return this.create(queue, newTask(request), message);
  }

  /** The stored message of a task with links: kept for a while when Go completes it. */
  encode({ message }: EnqueueRequest): Buffer {
    const { id, groupKey } = message;
    if (groupKey !== '') {
      throw new InvalidTaskError(`task "${id}" is linked and has the group "${groupKey}"; leave one out`);
    }
    return storedMessage(message.retention > 0 ? message : { ...message, retention: TECHNICAL_RETENTION });
  }

  /** Has a task kept after a success while somebody watches it, also when its message has been written anew. */
  retain(queue: string, id: string): void {
    const record = this.store(queue).tasks.get(id);
    if (!record || !this.places.get(queue)?.links.has(id)) return;
    const message = readMessage(record);
    if (message.retention === 0) record.msg = storedMessage({ ...message, retention: TECHNICAL_RETENTION });
  }

  /** Lets a waiting or cancelled task run, at its time. */
  release(queue: string, id: string, end: WaitEnd): void {
    const store = this.store(queue);
    const record = store.tasks.get(id);
    if (!record?.after) return;
    store.waiting.delete(id);
    store.archived.delete(id);
    record.group = undefined;
    record.after.cancelledAt = undefined;
    const { processAt } = record.after;
    if (processAt !== undefined && processAt * 1000 > this.now) {
      record.state = 'scheduled';
      store.scheduled.set(id, processAt);
    } else store.addPending(id, record, this.now);
    const state = record.state === 'scheduled' ? 'scheduled' : 'pending';
    this.note({ kind: 'wait', queue, id, type: readMessage(record).type, end, state });
  }
}
