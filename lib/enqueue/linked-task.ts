import type { LinkedRequest, MarkRequest, Prerequisite, Wait } from '../broker/links.js';
import type { EnqueueRequest } from '../broker/broker.js';
import { ceilSeconds } from '../clock.js';
import { type ErrorClass, InvalidTaskError } from '../errors.js';
import { isTypePrerequisite, readKey } from '../task/link-settings.js';
import { type LinkSettings, type MissingPolicy, TECHNICAL_RETENTION } from '../task/links.js';
import { prepared, type PreparedTask } from './prepared-task.js';

/** A task that waits for others, or whose end is remembered, as a LinkedProducer takes it. */
export interface PreparedLinks extends LinkedRequest {
  /** How prerequisites count that cannot be found. `undefined`: the task is refused. */
  readonly missing: MissingPolicy | undefined;
}

/**
 * Adds links to a task.
 *
 * @param payload as the caller gave it
 * @param now milliseconds since the epoch
 * @throws InvalidTaskError when a key cannot be found, the task would wait for itself, or a queue begins with ~
 */
export function linked(
  request: EnqueueRequest,
  links: LinkSettings,
  payload: unknown,
  now: number,
  delayedTo: number | undefined,
): PreparedTask {
  const { type } = request.message;
  refuseMarks(request.message.queue, `the queue of task "${type}"`);
  const ownKey = links.key && readKey(links.key, payload, `key of task "${type}"`);
  const mark = links.rememberFor > 0 ? { type, key: ownKey!, rememberFor: links.rememberFor } : undefined;
  const wait = links.after.length > 0 ? waitOf(request, links, payload, ownKey, now) : undefined;
  const { state, nextProcessAt } = wait
    ? { state: 'waiting' as const, nextProcessAt: wait.deadline * 1000 }
    : prepared(request, now, delayedTo);
  const made: PreparedLinks = { ...withRoom(request, links, mark, wait), wait, mark, missing: links.missing };
  return { request: made, state, nextProcessAt, linked: true };
}

/** Of a task that others create, when it is its turn: its end is remembered as that of any task of its definition, and it waits for none. */
export const marksOf = (links: LinkSettings | undefined): LinkSettings | undefined =>
  links && links.rememberFor > 0 ? { ...links, after: [] } : undefined;

/** The lock lasts as long as the wait, too, and the hash long enough that its end is seen. */
function withRoom(
  request: EnqueueRequest,
  { waitAtMost }: LinkSettings,
  mark: MarkRequest | undefined,
  wait: Wait | undefined,
): EnqueueRequest {
  const { message, uniqueTtl } = request;
  const retention = mark && message.retention === 0 ? TECHNICAL_RETENTION : message.retention;
  return {
    ...request,
    message: retention === message.retention ? message : { ...message, retention },
    uniqueTtl: wait && uniqueTtl !== undefined ? uniqueTtl + ceilSeconds(waitAtMost) : uniqueTtl,
  };
}

function waitOf(
  { message }: EnqueueRequest,
  { after, onFailure, onTimeout, waitAtMost }: LinkSettings,
  payload: unknown,
  ownKey: string | undefined,
  now: number,
): Wait {
  const prerequisites = after.map((one): Prerequisite => {
    if (!isTypePrerequisite(one)) {
      refuseMarks(one.queue, `queue in after of task "${message.type}"`);
      if (one.id === message.id && one.queue === message.queue) throw itself(message.type, `id "${one.id}"`);
      return { queue: one.queue, id: one.id };
    }
    const { type } = one.task;
    const key = one.sameKey && ownKey !== undefined ? ownKey : readKey(one.key, payload, keyName(message.type, type));
    if (type === message.type && key === ownKey) throw itself(type, `key "${key}"`);
    return { type, key };
  });
  return { prerequisites, onFailure, onTimeout, deadline: ceilSeconds(now + waitAtMost) };
}

/**
 * A place whose name begins so has the marks of a type: see placeOfMarks.
 *
 * @throws `Failure`
 */
export function refuseMarks(queue: string, name: string, Failure: ErrorClass = InvalidTaskError): void {
  if (!queue.startsWith('~')) return;
  throw new Failure(
    `${name} is "${queue}": a name that begins with ~ stands for the keys of a type; give linked tasks another queue`,
  );
}

const keyName = (type: string, of: string): string => `the key of "${of}" in after of task "${type}"`;

const itself = (type: string, which: string): InvalidTaskError =>
  new InvalidTaskError(`task "${type}" with ${which} cannot wait for itself; name another task in after`);

/** The tasks among the prerequisites of a request, with the numbers of their edges. */
export function tasksBefore({
  wait,
}: LinkedRequest): { readonly queue: string; readonly id: string; readonly n: number }[] {
  return (wait?.prerequisites ?? []).flatMap((one, n) => ('id' in one ? [{ ...one, n }] : []));
}
