import { floorSeconds } from '../../../clock.js';
import type { WaitEnd } from '../../../task/links.js';
import { TECHNICAL_RETENTION, type Watcher, type WatchRequest } from '../../links.js';
import { type TaskRecord, readMessage, storedMessage } from '../queue-store.js';
import type { Bodies } from './bodies.js';
import type { LinkEngine } from './engine.js';
import type { Edge, EdgeTarget, End, Origin, WaitRecord } from './place.js';
import { ARCHIVED, DELETED, MISSING, prerequisiteFailed, timedOut } from './texts.js';

/** How long an edge is remembered whose task is not stored yet. */
const EARLY_SECONDS = 86_400;
/** How long those who wait for a key are known beyond the last deadline. */
const WAITERS_EXTRA_SECONDS = 86_400;

/** An edge of a waiting task by which it is known before the task is stored. */
const nameOf = (n: number, deadline: number, { from, of }: Origin): string => JSON.stringify([n, deadline, from, of]);

/** Tasks that wait for others, and the marks they may wait for. */
export class Waits {
  constructor(private readonly engine: LinkEngine) {
    engine.onWait = (place, id, after) => this.begin(place, id, after);
    engine.on.edge = (place, body) => this.edge(place, body);
    engine.on.watch = (place, { id, w }) => {
      if (!this.watch(place, id, w)) engine.notify(w, { place, id, ok: false, reason: DELETED, result: undefined });
    };
    engine.on.mark = (place, body) => this.mark(place, body);
    engine.on.watchmark = (place, body) => this.watchMark(place, body);
    engine.notifiers.w = ({ to, id, n, d }, { place, id: of, ok, reason }) =>
      engine.post(to, 'edge', { id, n, d, ok, why: reason, from: place, of });
    engine.notifiers.m = ({ to, key, ttl }, { ok, reason }) => engine.post(to, 'mark', { key, ok, why: reason, ttl });
  }

  /** A new task has been stored: applies what is known already, and asks the marks. */
  private begin(place: string, id: string, after: WaitRecord): void {
    const { early } = this.engine.place(place);
    const known = early.get(id, this.engine.now);
    const d = after.deadline;
    for (const [n, { from, of }] of after.edges.entries()) {
      const end = known?.get(nameOf(n, d, { from, of }));
      if (end) this.engine.post(place, 'edge', { id, n, d, ok: end.ok, why: end.reason, from, of });
    }
    early.delete(id);
    for (const [n, { from, of }] of after.edges.entries()) {
      if (!from.startsWith('~')) continue;
      this.engine.post(from, 'watchmark', { key: of, w: { to: place, id, n, d } });
    }
  }

  /**
   * Registers a watcher with a task, and answers at once when that has ended. Returns `false` when there is no such task,
   * unless `missing` says how that counts.
   */
  watch(place: string, id: string, watcher: Watcher, missing?: WatchRequest['missing']): boolean {
    const record = this.recordOf(place, id);
    const end = { place, id, reason: '', result: record?.result };
    if (!record && missing) this.engine.notify(watcher, { ...end, ok: missing === 'succeeded', reason: MISSING });
    if (!record) return missing !== undefined;
    if (record.state === 'completed') {
      this.engine.notify(watcher, { ...end, ok: true });
      return true;
    }
    this.engine.watch(place, id, watcher);
    this.engine.retain(place, id);
    if (record.state === 'archived') this.engine.notify(watcher, { ...end, ok: false, reason: ARCHIVED });
    return true;
  }

  /** Notifies the watchers of the task, if it has ended. Returns whether there were any. */
  check(place: string, id: string): boolean {
    const watched = this.engine.find(place)?.links.get(id);
    const record = this.recordOf(place, id);
    if (!record) this.engine.ended(place, id, false, DELETED);
    else if (record.state === 'completed') {
      this.engine.ended(place, id, true, '', record.result);
      if (watched && readMessage(record).retention === TECHNICAL_RETENTION) this.forget(place, id);
    } else if (record.state === 'archived' && !watched?.notified) {
      this.engine.ended(place, id, false, readMessage(record).errorMsg || ARCHIVED);
    } else return false;
    return watched !== undefined;
  }

  /** Ends waits that are due. Returns how many. */
  timeOut(place: string, limit: number): number {
    const store = this.engine.store(place);
    const due = store.waiting.upTo(floorSeconds(this.engine.now), limit);
    for (const { id } of due) {
      const record = store.tasks.get(id);
      if (!record?.after) store.waiting.delete(id);
      else if (record.after.onTimeout === 'run') this.engine.release(place, id, 'timedOut');
      else this.archive(place, id, record, timedOut(record.after), 'timedOut');
    }
    return due.length;
  }

  private edge(place: string, { id, n, d, ok, why, from, of }: Bodies['edge']): void {
    const record = this.recordOf(place, id);
    if (record?.after?.deadline !== d) return this.remember(place, id, nameOf(n, d, { from, of }), { ok, reason: why });
    const edge = record.after.edges[n];
    if (!edge || edge.from !== from || edge.of !== of || edge.state === 'succeeded') return;
    edge.state = ok ? 'succeeded' : 'failed';
    edge.reason = ok ? undefined : why;
    if (this.isWaiting(place, id)) this.decide(place, id, record, record.after, edge);
    else if (this.isCancelled(place, id, record.after) && isOver(record.after))
      this.engine.release(place, id, 'revived');
  }

  private decide(place: string, id: string, record: TaskRecord, after: WaitRecord, edge: Edge): void {
    const cancels = after.onFailure === 'cancel' && edge.state === 'failed';
    if (cancels) {
      after.cancelledAt = floorSeconds(this.engine.now);
      this.archive(place, id, record, prerequisiteFailed(edge, edge.reason ?? ''), 'cancelled');
    } else if (isOver(after)) this.engine.release(place, id, 'released');
  }

  /** Deletes a completed task that was kept for those who watch it, and for nobody else. */
  private forget(place: string, id: string): void {
    const store = this.engine.store(place);
    store.completed.delete(id);
    store.tasks.delete(id);
  }

  private isWaiting(place: string, id: string): boolean {
    return this.engine.store(place).waiting.score(id) !== undefined;
  }

  /** Archived because a prerequisite failed, and not touched since. */
  isCancelled(place: string, id: string, { cancelledAt }: WaitRecord): boolean {
    return cancelledAt !== undefined && this.engine.store(place).archived.score(id) === cancelledAt;
  }

  private archive(place: string, id: string, record: TaskRecord, error: string, end: WaitEnd): void {
    const store = this.engine.store(place);
    const now = floorSeconds(this.engine.now);
    store.waiting.delete(id);
    const message = readMessage(record);
    record.msg = storedMessage({ ...message, errorMsg: error, lastFailedAt: now });
    record.state = 'archived';
    record.group = undefined;
    store.archived.set(id, now);
    this.engine.note({ kind: 'wait', queue: place, id, type: message.type, end, state: 'archived', reason: error });
    this.engine.ended(place, id, false, error);
  }

  private remember(place: string, id: string, name: string, end: End): void {
    const { early } = this.engine.place(place);
    const { now } = this.engine;
    const ends = early.get(id, now) ?? new Map<string, End>();
    if (ends.get(name)?.ok !== true) ends.set(name, end);
    early.set(id, ends, now + EARLY_SECONDS * 1000, now);
  }

  private mark(place: string, { key, ok, why, ttl }: Bodies['mark']): void {
    const { marks, waiters } = this.engine.place(place);
    const { now } = this.engine;
    if (!ok && marks.get(key, now)?.ok) return;
    marks.set(key, { ok, reason: why }, (floorSeconds(now) + ttl) * 1000, now);
    for (const target of waiters.get(key, now)?.values() ?? []) this.answer(place, key, target, { ok, reason: why });
    if (ok) waiters.delete(key);
  }

  private watchMark(place: string, { key, w }: Bodies['watchmark']): void {
    const { marks, waiters } = this.engine.place(place);
    const { now } = this.engine;
    const mark = marks.get(key, now);
    if (mark) this.answer(place, key, w, mark);
    if (mark?.ok) return;
    const targets = waiters.get(key, now) ?? new Map<string, EdgeTarget>();
    targets.set(JSON.stringify(w), w);
    const expiresAt = Math.max(waiters.expiresAt(key), (w.d + WAITERS_EXTRA_SECONDS) * 1000);
    waiters.set(key, targets, expiresAt, now);
  }

  private answer(place: string, key: string, { to, id, n, d }: EdgeTarget, { ok, reason }: End): void {
    this.engine.post(to, 'edge', { id, n, d, ok, why: reason, from: place, of: key });
  }

  private recordOf(place: string, id: string): TaskRecord | undefined {
    return this.engine.store(place).tasks.get(id);
  }
}

/** Whether the task may run: what failed counts as over only for one that runs all the same. */
const isOver = ({ edges, onFailure }: WaitRecord): boolean =>
  edges.every(({ state }) => state === 'succeeded' || (state === 'failed' && onFailure === 'run'));
