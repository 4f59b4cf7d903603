import type { LinkedRequest, MarkRequest, Wait } from '../broker/links.js';
import { isLinked } from '../broker/links.js';
import type { EnqueueRequest } from '../broker/enqueue-request.js';
import type { Repeat, RepeatRequest } from '../broker/uniqueness.js';
import type { PreparedLinks } from '../enqueue/linked-task.js';
import type { PreparedTask } from '../enqueue/prepared-task.js';
import { UndecodableMessageError } from '../errors.js';
import type { MissingPolicy } from '../task/links.js';
import { LAST_COUNTS } from '../task/repeats.js';
import { decodeTaskMessage, encodeTaskMessage } from '../wire/codec.js';
import type { NewRow, TakenRow } from './store.js';

/** What a request has besides its message. */
interface Details {
  readonly processAt?: number;
  readonly uniqueTtl?: number;
  readonly madeId?: boolean;
  readonly wait?: Wait;
  readonly mark?: MarkRequest;
  readonly missing?: MissingPolicy;
  readonly repeat?: Repeat;
}

/** A request as it stands in a row. */
export type RowRequest = EnqueueRequest | PreparedLinks | RepeatRequest;

export function rowOf({ request, repeats }: PreparedTask): NewRow {
  const { message, processAt, uniqueTtl, madeId, wait, mark, missing } = request as PreparedLinks;
  const repeat = repeats && (request as RepeatRequest).repeat;
  const details: Details = {
    ...(processAt !== undefined && { processAt }),
    ...(uniqueTtl !== undefined && { uniqueTtl }),
    ...(madeId && { madeId }),
    ...(wait && { wait }),
    ...(mark && { mark }),
    ...(missing && { missing }),
    ...(repeat && { repeat }),
  };
  const { queue, id, type } = message;
  const ordered = repeat !== undefined && LAST_COUNTS.has(repeat.policy);
  return { queue, taskId: id, type, message: encodeTaskMessage(message), details: JSON.stringify(details), ordered };
}

/** @throws UndecodableMessageError when the row is damaged */
export function requestOf({ id, queue, message, details }: TakenRow): RowRequest {
  try {
    const decoded = decodeTaskMessage(message);
    if (decoded.queue !== queue) throw new Error(`its queue is "${queue}", and that of its message "${decoded.queue}"`);
    return { ...(JSON.parse(details) as Details), message: decoded };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UndecodableMessageError(`row ${id} of the outbox cannot be read: ${reason}`, { cause });
  }
}

export const hasLinks = (request: RowRequest): request is PreparedLinks => isLinked(request as LinkedRequest);

export const repeats = (request: RowRequest): request is RepeatRequest =>
  (request as RepeatRequest).repeat !== undefined;
