import { encodeTaskMessage } from '../../../wire/codec.js';
import type { QueueKeys } from '../../../wire/keys.js';
import type { Lease, Settlement, Sleep, StoredResult } from '../../broker.js';
import { requireSeconds } from './arguments.js';
import type { Argument } from './script-command.js';
import { packTexts } from './packed-texts.js';
import { awaitedField, checkpointField } from './step-fields.js';
import { TaskLease } from './task-lease.js';

/** The codes of settlements in exchange.lua. */
const KIND = {
  done: '0',
  complete: '1',
  completeWithResult: '2',
  retry: '3',
  retryFailed: '4',
  archive: '5',
  archiveAsIs: '6',
  requeue: '7',
  wait: '8',
  sleep: '9',
} as const;

/** A batch of settlements in the form of exchange.lua. */
export interface EncodedSettlements {
  readonly leases: Lease[];
  readonly taskKeys: string[];
  /**
   * The locks to release and the waitlists to join, in the order of the settlements that name them.
   */
  readonly named: string[];
  /** Settlements but plain `done`, six arguments each. */
  readonly specials: Argument[];
  /** The results of the others, by index; as many as the settlements when there is one. */
  readonly results: StoredResult[];
  /** Whether any settlement without arguments has a result, also that of a step. */
  hasResults: boolean;
  readonly archivedIds: string[];
}

/** Encodes, and so checks, messages before sending. */
export function encodeSettlements(batch: readonly Settlement[], queue: QueueKeys): EncodedSettlements {
  const encoded: EncodedSettlements = {
    leases: [],
    taskKeys: [],
    named: [],
    specials: [],
    results: [],
    hasResults: false,
    archivedIds: [],
  };
  for (let i = 0; i < batch.length; i++) {
    const item = batch[i]!;
    encoded.leases.push(item.lease);
    encoded.taskKeys.push(queue.taskPrefix + item.lease.id);
    if (isPlain(item)) {
      if (item.result !== undefined) encoded.hasResults = true;
      // Results of steps are in encodeSettledSteps.
      if (!TaskLease.stepOf(item.lease)) addResult(encoded.results, item.result, i, batch.length);
    } else encodeSpecial(item, i + 1, queue, encoded);
  }
  return encoded;
}

type Done = Extract<Settlement, { kind: 'done' }>;

export const isPlain = (item: Settlement): item is Done =>
  item.kind === 'done' && item.uniqueKey === '' && !item.revoked;

function addResult(results: StoredResult[], result: StoredResult | undefined, index: number, count: number): void {
  if (result === undefined) return;
  while (results.length < count) results.push('');
  results[index] = result;
}

function encodeSpecial(item: Settlement, index: number, queue: QueueKeys, encoded: EncodedSettlements): void {
  const { named, specials, archivedIds } = encoded;
  const key = item.kind === 'wait' ? queue.waiting(item.waitlist) : lockOf(item, queue);
  if (key !== undefined) named.push(key);
  if (item.kind === 'archive') archivedIds.push(item.lease.id);
  specials.push(String(index), kindOf(item), flagsOf(item, key), messageOf(item), timeOf(item), resultOf(item));
}

/** Whether it names a key, and what the attempt leaves in the history of the task. */
function flagsOf(item: Settlement, key: string | undefined): string {
  const attempt = 'attempt' in item ? item.attempt : undefined;
  if (!attempt) return key ? '1' : '';
  return `${key ? '1' : '0'}${attempt.most} ${attempt.text}`;
}

/** A lock of another queue would be in another slot of a cluster, and fail the whole call. */
function lockOf(item: Settlement, { base }: QueueKeys): string | undefined {
  const lock = item.kind === 'done' ? item.uniqueKey : item.kind === 'complete' ? item.message.uniqueKey : '';
  return lock.startsWith(base) ? lock : undefined;
}

function kindOf(item: Settlement): string {
  switch (item.kind) {
    case 'done':
      return KIND.done;
    case 'complete':
      return item.result !== undefined ? KIND.completeWithResult : KIND.complete;
    case 'retry':
      return item.countAsFailure ? KIND.retryFailed : KIND.retry;
    case 'archive':
      return item.message ? KIND.archive : KIND.archiveAsIs;
    case 'requeue':
      return KIND.requeue;
    case 'wait':
      return KIND.wait;
    case 'sleep':
      return KIND.sleep;
  }
}

const messageOf = (item: Settlement): Argument =>
  'message' in item && item.message ? encodeTaskMessage(item.message) : '';

function resultOf(item: Settlement): Argument {
  if (item.kind === 'sleep') return sleepOf(item);
  if (item.kind === 'archive' || (item.kind === 'done' && item.revoked)) return item.reason ?? '';
  return ((item.kind === 'complete' || item.kind === 'done') && item.result) || '';
}

/** Packed: field and value of its checkpoint, empty without one; the fields that end the sleep. That of the checkpoint ends it at once. */
const sleepOf = ({ checkpoint, awaits = [], atOnce }: Sleep): Buffer => {
  const field = checkpoint ? checkpointField(checkpoint.name) : '';
  const first = [field, checkpoint?.bytes ?? ''];
  return packTexts([...first, ...(atOnce ? [field] : []), ...awaits.map(awaitedField)]);
};

function timeOf(item: Settlement): string {
  if (item.kind === 'sleep') return requireSeconds(item.wakeAt, `wakeAt of task "${item.lease.id}"`);
  if (item.kind === 'complete') return requireSeconds(item.expiresAt, `expiresAt of task "${item.lease.id}"`);
  if (item.kind === 'done' && item.revoked) return '1';
  if (item.kind === 'requeue') return item.countedAt === undefined ? '' : String(item.countedAt);
  if (item.kind === 'retry') return requireSeconds(item.retryAt, `retryAt of task "${item.lease.id}"`);
  return '';
}
