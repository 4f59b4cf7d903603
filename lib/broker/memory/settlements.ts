import { floorSeconds } from '../../clock.js';
import type { StoredAttempt } from '../../task/attempts.js';
import type { ArchiveLimit } from '../archives.js';
import type { AttemptNote } from '../attempts.js';
import type { AwaitedEvent, Settlement, SettleStatus, Sleep, StoredResult } from '../broker.js';
import { stepOfAnswer, UNDO_RECORD } from '../checkpoints.js';
import type { LinkEngine } from './links/engine.js';
import { ARCHIVED, REVOKED } from './links/texts.js';
import { trimArchived } from './maintenance.js';
import { hasCome, type QueueStore, type TaskRecord, stepsOf, storedMessage, wellFormed } from './queue-store.js';
import { defer } from './waitlists.js';

/**
 * Settles in order. Encodes, and so checks, messages before anything is written.
 *
 * @param links `undefined`: nobody there waits for the end of a task
 */
export function settleTasks(
  store: QueueStore,
  links: LinkEngine | undefined,
  queue: string,
  items: readonly Settlement[],
  now: number,
): SettleStatus[] {
  const messages = items.map((item) => ('message' in item && item.message ? storedMessage(item.message) : undefined));
  const written: Settlement[] = [];
  const settled = items.map((given, index): SettleStatus => {
    const record = store.leased(given.lease);
    if (!record) return 'lost';
    const { result } = record;
    const item = withoutReturn(given, record, now);
    written.push(item);
    if (item === given) record.msg = messages[index] ?? record.msg;
    settle(store, item, wellFormed(item.lease.id), record, now);
    if ('attempt' in given && given.attempt) noteAttempt(record, given.attempt); // of a deleted task it is gone with the record
    if (links) notifyOfEnd(links, wellFormed(queue), item, result);
    return 'settled';
  });
  store.processed.add(written.filter(countsAsProcessed).length, now);
  store.failed.add(written.filter(countsAsFailed).length, now);
  return settled;
}

function settle(store: QueueStore, item: Settlement, id: string, record: TaskRecord, now: number): void {
  store.lease.delete(id);
  switch (item.kind) {
    case 'done':
      store.tasks.delete(id);
      return store.locks.release(wellFormed(item.uniqueKey), id, now);
    case 'complete':
      record.state = 'completed';
      if (item.result !== undefined) record.result = bytesOf(item.result);
      store.completed.set(id, item.expiresAt);
      return store.locks.release(wellFormed(item.message.uniqueKey), id, now);
    case 'retry':
      record.state = 'retry';
      return store.retry.set(id, item.retryAt);
    case 'archive':
      record.state = 'archived';
      return store.archived.set(id, floorSeconds(now));
    case 'requeue':
      record.state = 'pending';
      record.pendingSince = now;
      return store.pending.pushFront(id);
    case 'wait':
      return defer(store, wellFormed(item.waitlist), id, record, now);
    case 'sleep':
      return sleep(store, item, id, record, now);
  }
}

function sleep(store: QueueStore, item: Sleep, id: string, record: TaskRecord, now: number): void {
  const { checkpoint, wakeAt } = item;
  if (checkpoint) stepsOf(record).checkpoints.set(wellFormed(checkpoint.name), Buffer.from(checkpoint.bytes));
  const awaits = (item.awaits ?? []).map(wellFormedEvent);
  if (item.atOnce || awaits.some((event) => hasCome(record, event) || isNotCalled(record, event))) {
    record.state = 'pending';
    record.pendingSince = now;
    return store.pending.pushFront(id);
  }
  record.state = 'scheduled';
  record.awaits = awaits;
  store.scheduled.set(id, wakeAt);
}

/** Whether the checkpoint of the step is missing that has called the task: the handler calls it again. */
const isNotCalled = ({ steps }: TaskRecord, event: AwaitedEvent): boolean =>
  'answer' in event && steps?.checkpoints.has(stepOfAnswer(event.answer)) !== true;

const wellFormedEvent = (event: AwaitedEvent): AwaitedEvent =>
  'answer' in event ? { answer: wellFormed(event.answer) } : { signal: wellFormed(event.signal), n: event.n };

/** Notifies the watchers of the task, if this is its end. @param result what the task has stored before */
function notifyOfEnd(links: LinkEngine, place: string, item: Settlement, result: Buffer | undefined): void {
  const id = wellFormed(item.lease.id);
  if (item.kind === 'archive' || item.kind === 'retry' || item.kind === 'sleep') links.retain(place, id);
  if (item.kind === 'archive') links.ended(place, id, false, item.reason || ARCHIVED);
  else if (item.kind === 'done' && item.revoked) links.ended(place, id, false, item.reason || REVOKED);
  else if (item.kind === 'done' || item.kind === 'complete') {
    links.ended(place, id, true, '', item.result === undefined ? result : bytesOf(item.result));
  }
}

/** A copy. */
const bytesOf = (result: StoredResult): Buffer => Buffer.from(result as string);

/** Each archiving trims the archive, but spares what it has archived. */
export function trimAfter(store: QueueStore, limit: ArchiveLimit, items: readonly Settlement[], now: number): void {
  const spared = items.flatMap(({ kind, lease }) => (kind === 'archive' ? [wellFormed(lease.id)] : []));
  if (spared.length > 0) trimArchived(store, limit, Infinity, now, new Set(spared));
}

/**
 * A superseded task that would come again would run after the one that is newer: it is revoked. One with steps is called again, to undo
 * them.
 */
function withoutReturn(item: Settlement, record: TaskRecord, now: number): Settlement {
  const { supersededBy } = record;
  const returns = item.kind === 'retry' || item.kind === 'requeue' || item.kind === 'wait' || item.kind === 'sleep';
  if (supersededBy === undefined || !returns) return item;
  const { lease } = item;
  const checkpoints = record.steps?.checkpoints;
  if (!checkpoints || checkpoints.size === 0) return { kind: 'done', lease, uniqueKey: '', revoked: true };
  const { over: _, ...before } = undoRecordOf(record) ?? {};
  const undo = { ...before, error: `superseded by task "${supersededBy}"`, outcome: 'revoke', at: now };
  checkpoints.set(UNDO_RECORD, Buffer.from(`${JSON.stringify(undo)}\n`));
  delete record.supersededBy;
  return { kind: 'requeue', lease };
}

/** Whether its steps are being undone, as it has failed for good: nobody changes it. */
export function isBeingUndone(record: TaskRecord): boolean {
  const undo = undoRecordOf(record);
  return undo !== undefined && undo.over === undefined;
}

/** Its UndoRecord, as checkpoint.ts has it. */
function undoRecordOf({ steps }: TaskRecord): { over?: true } | undefined {
  const bytes = steps?.checkpoints.get(UNDO_RECORD);
  return bytes && (JSON.parse(bytes.toString()) as { over?: true });
}

/** Notes an attempt in the history of its task. */
function noteAttempt(record: TaskRecord, { text, most }: AttemptNote): void {
  const history = (record.attempts ??= { first: 0, texts: [] });
  history.texts.push(wellFormed(text));
  const surplus = Math.max(0, history.texts.length - most);
  history.texts.splice(0, surplus);
  history.first += surplus;
}

export function attemptsOf(record: TaskRecord | undefined): StoredAttempt[] {
  const { first, texts } = record?.attempts ?? { first: 0, texts: [] };
  return texts.map((text, index) => ({ n: first + index, text }));
}

const countsAsFailed = (item: Settlement): boolean =>
  item.kind === 'archive' || (item.kind === 'retry' && item.countAsFailure);

const countsAsProcessed = (item: Settlement): boolean =>
  item.kind === 'done' || item.kind === 'complete' || countsAsFailed(item);
