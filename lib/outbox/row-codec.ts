import type { LinkedRequest, MarkRequest, Wait } from '../broker/links.js';
import { isLinked } from '../broker/links.js';
import type { EnqueueRequest } from '../broker/enqueue-request.js';
import type { Repeat, RepeatRequest } from '../broker/uniqueness.js';
import type { PreparedLinks } from '../enqueue/linked-task.js';
import type { PreparedTask } from '../enqueue/prepared-task.js';
import { UndecodableMessageError } from '../errors.js';
import type { MissingPolicy } from '../task/links.js';
import { LAST_COUNTS, type RepeatPolicy } from '../task/repeats.js';
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

const KNOWN_DETAILS: Readonly<Record<keyof Details, true>> = {
  processAt: true,
  uniqueTtl: true,
  madeId: true,
  wait: true,
  mark: true,
  missing: true,
  repeat: true,
};

const KNOWN_POLICIES: Readonly<Record<RepeatPolicy, true>> = {
  reject: true,
  existing: true,
  replace: true,
  debounce: true,
  latest: true,
  supersede: true,
  once: true,
};

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
    return { ...detailsOf(details), message: decoded };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UndecodableMessageError(`row ${id} of the outbox cannot be read: ${reason}`, { cause });
  }
}

/** What this version does not know must not be left out: the task would be another one. */
function detailsOf(text: string): Details {
  const details = JSON.parse(text) as Details;
  const unknown = Object.keys(details).filter((name) => !Object.hasOwn(KNOWN_DETAILS, name));
  const policy = details.repeat?.policy;
  if (policy !== undefined && !Object.hasOwn(KNOWN_POLICIES, policy)) unknown.push(`the policy ${policy}`);
  if (unknown.length === 0) return details;
  throw new Error(
    `a newer version has written it, with ${unknown.join(', ')}; update the process of this relay, and have the row tried again`,
  );
}

export const hasLinks = (request: RowRequest): request is PreparedLinks => isLinked(request as LinkedRequest);

export const repeats = (request: RowRequest): request is RepeatRequest =>
  (request as RepeatRequest).repeat !== undefined;
