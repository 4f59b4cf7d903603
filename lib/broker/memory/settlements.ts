import type { StoredAttempt } from '../../task/attempts.js';
import type { AttemptNote } from '../attempts.js';
import type { Settlement } from '../broker.js';
import { UNDO_RECORD } from '../checkpoints.js';
import { type TaskRecord, wellFormed } from './queue-store.js';

/**
 * A superseded task that would come again would run after the one that is newer: it is revoked. One with steps is called again, to undo
 * them.
 */
export function withoutReturn(item: Settlement, record: TaskRecord, now: number): Settlement {
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
export function noteAttempt(record: TaskRecord, { text, most }: AttemptNote): void {
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

export const countsAsFailed = (item: Settlement): boolean =>
  item.kind === 'archive' || (item.kind === 'retry' && item.countAsFailure);

export const countsAsProcessed = (item: Settlement): boolean =>
  item.kind === 'done' || item.kind === 'complete' || countsAsFailed(item);
