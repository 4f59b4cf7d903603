import type { BatchState } from '../../../task/batch.js';
import type { NewBatch } from '../../batches.js';
import { isLinked, type LinkedRequest } from '../../links.js';
import { requireSeconds } from './arguments.js';
import { encodeLinkedMessage, taskWithLinks } from './linked-requests.js';
import type { Argument } from './script-command.js';
import { encodeTaskMessage } from '../../../wire/codec.js';

/**
 * A batch in the form of open-batch.lua: its definition, then name and message of each callback.
 *
 * @param now Unix seconds
 */
export function encodeBatch({ id, name, callbacks, closeBy, retention }: NewBatch, now: number): Argument[] {
  const entries = Object.entries(callbacks);
  const tasks = entries.map(([callback, request]) => [callback, encodeCallback(request, now)]);
  const definition = {
    id,
    name,
    closeBy: Number(requireSeconds(closeBy, `closeBy of batch "${id}"`)),
    retention: Number(requireSeconds(retention, `the retention of batch "${id}"`, 0)),
    callbacks: Object.fromEntries(tasks) as unknown,
  };
  const messages = entries.flatMap(([callback, { message }]): Argument[] => [callback, encodeTaskMessage(message)]);
  return [JSON.stringify(definition), ...messages];
}

function encodeCallback(request: LinkedRequest, now: number): unknown {
  const { after, ...task } = taskWithLinks(request, undefined);
  const within = request.wait && request.wait.deadline - now;
  return { ...task, queue: request.message.queue, after: after && { ...after, within } };
}

/** Members in the form of add-members.lua. */
export interface EncodedMembers {
  readonly locks: string[];
  /** A letter per member. */
  readonly routes: string;
  /** The arguments after `routes`. */
  readonly rest: Argument[];
}

/** Encodes, and so checks, everything before sending. */
export function encodeMembers(requests: readonly LinkedRequest[]): EncodedMembers {
  const messages: Argument[] = [];
  const locks: string[] = [];
  const further: string[] = [];
  let routes = '';
  for (let i = 0; i < requests.length; i++) {
    const request = requests[i]!;
    const { message, processAt, uniqueTtl } = request;
    const hasLinks = isLinked(request);
    const route = hasLinks ? 'w' : processAt === undefined ? 'p' : 's';
    messages.push(encodeLinkedMessage(message));
    routes += uniqueTtl === undefined ? route : route.toUpperCase();
    if (hasLinks) {
      further.push(JSON.stringify(taskWithLinks(request, undefined)));
      continue;
    }
    if (uniqueTtl !== undefined) {
      locks.push(message.uniqueKey);
      further.push(requireSeconds(uniqueTtl, `uniqueTtl of task "${message.id}"`, 1));
    }
    if (processAt !== undefined) further.push(requireSeconds(processAt, `processAt of task "${message.id}"`));
  }
  return { locks, routes, rest: messages.concat(further) };
}

/** What a batch has in one queue. */
export interface PartRecord {
  readonly made: number;
  readonly ok: number;
  readonly dead: number;
  /** Members that Redis has lost. */
  readonly lost: number;
}

/** A batch as its home knows it. */
export interface StoredBatch {
  readonly name: string;
  readonly state: BatchState;
  readonly openedAt: number;
  readonly endedAt: number | undefined;
  readonly parts: readonly { readonly queue: string; readonly reported: PartRecord }[];
}

/** The reply of read-batch.lua. */
export function readBatch(reply: readonly Buffer[]): StoredBatch | undefined {
  if (reply.length === 0) return undefined;
  const [name, state, openedAt, endedAt, ...rest] = reply.map(String) as [string, BatchState, string, string];
  const queues = (rest as string[]).flatMap((queue, index, all) =>
    index % 2 === 0 ? [{ queue, reported: readReport(all[index + 1]!) }] : [],
  );
  return {
    name,
    state,
    openedAt: Number(openedAt),
    endedAt: endedAt === '' ? undefined : Number(endedAt),
    parts: queues,
  };
}

/** What a part has reported to its home last, see batches.lua: nobody knows more when the part is gone. */
function readReport(text: string): PartRecord {
  const [, , ok = 0, dead = 0, lost = 0] = text.split(' ').map(Number);
  return { made: ok + dead + lost, ok, dead, lost };
}

/** `undefined` when there is no such part. */
export function readPart(fields: readonly (string | null)[]): PartRecord | undefined {
  const [made, ok, dead] = fields;
  return made == null ? undefined : { made: Number(made), ok: Number(ok ?? 0), dead: Number(dead ?? 0), lost: 0 };
}
