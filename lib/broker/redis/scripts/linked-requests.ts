import { encodeTaskMessage } from '../../../wire/codec.js';
import type { QueueKeys } from '../../../wire/keys.js';
import type { TaskMessage } from '../../../wire/message.js';
import { InvalidTaskError } from '../../../errors.js';
import type { EnqueueRequest } from '../../broker.js';
import {
  isLinked,
  type LinkedRequest,
  type MarkRequest,
  placeOfMarks,
  type Prerequisite,
  TECHNICAL_RETENTION,
  type Wait,
  type Watcher,
} from '../../links.js';
import { requireSeconds } from './arguments.js';
import { queueKeys } from './queue-keys.js';
import { type EncodedRequests, encodeRequests } from './requests.js';
import type { Argument } from './script-command.js';

/** How links.lua recognises a task of a call that is sent again; see enqueue.lua. */
export type Resent = 'i' | 'm' | undefined;

/** The message of a linked task: kept for a while when Go completes it, so that the keeper sees its end. */
export const encodeLinkedMessage = (message: TaskMessage): Buffer =>
  encodeTaskMessage(message.retention > 0 ? message : { ...message, retention: TECHNICAL_RETENTION });

/** The fields of a task for L.create of links.lua, without its message. */
export function linkedTask(request: EnqueueRequest, resent: Resent): Record<string, unknown> {
  const { message, processAt, uniqueTtl } = request;
  const task = `of task "${message.id}"`;
  if (message.groupKey !== '') {
    throw new InvalidTaskError(`task "${message.id}" is linked and has the group "${message.groupKey}"; leave one out`);
  }
  return {
    id: message.id,
    processAt: processAt === undefined ? undefined : Number(requireSeconds(processAt, `processAt ${task}`)),
    uniqueKey: uniqueTtl === undefined ? undefined : message.uniqueKey,
    uniqueTtl: uniqueTtl === undefined ? undefined : Number(requireSeconds(uniqueTtl, `uniqueTtl ${task}`, 1)),
    resent,
  };
}

/** JSON and message of each task, as enqueue-linked.lua reads them. */
export function encodeLinkedRequests(
  requests: readonly LinkedRequest[],
  again: boolean,
  maxPending?: number,
): Argument[] {
  return requests.flatMap((request) => {
    const { madeId, message } = request;
    const task = taskWithLinks(request, again ? (madeId ? 'i' : 'm') : undefined);
    return [
      JSON.stringify(maxPending === undefined ? task : { ...task, room: maxPending }),
      encodeLinkedMessage(message),
    ];
  });
}

/** As {@link linkedTask}, with what it waits for and who watches it. */
export const taskWithLinks = (request: LinkedRequest, resent: Resent): Record<string, unknown> => ({
  ...linkedTask(request, resent),
  watchers: request.mark && [watcherOfMark(request.mark)],
  after: request.wait && encodeWait(request.wait, request.message.id),
});

/** One task in the form of enqueue.lua; with links, its route is w, and JSON comes last. */
export function encodeRequest(queue: QueueKeys, request: LinkedRequest): EncodedRequests {
  if (!isLinked(request)) return encodeRequests(queue, [request]);
  const { message, uniqueTtl } = request;
  const { uniqueKey, uniqueTtl: ttl, ...task } = taskWithLinks(request, undefined);
  const keys = queueKeys('enqueue', queue).concat(queue.task(message.id));
  const first: Argument[] = [encodeLinkedMessage(message)];
  const last = JSON.stringify(task);
  if (uniqueTtl === undefined) return { keys, taskPrefix: queue.taskPrefix, routes: 'w', rest: first.concat(last) };
  const rest = first.concat(String(ttl), last);
  return { keys: keys.concat(uniqueKey as string), taskPrefix: queue.taskPrefix, routes: 'W', rest };
}

const encodeWait = ({ prerequisites, onFailure, onTimeout, deadline }: Wait, id: string): Record<string, unknown> => ({
  refs: prerequisites.map(encodePrerequisite),
  onFailure,
  onTimeout,
  deadline: Number(requireSeconds(deadline, `the deadline of the wait of task "${id}"`)),
});

/** Place and name, which is how the store knows a prerequisite. */
const encodePrerequisite = (prerequisite: Prerequisite): [place: string, name: string] =>
  'id' in prerequisite ? [prerequisite.queue, prerequisite.id] : [placeOfMarks(prerequisite.type), prerequisite.key];

export type MarkWatcher = Extract<Watcher, { k: 'm' }>;

/** Notifies the marks of a type of the end of a task. */
export const watcherOfMark = ({ type, key, rememberFor }: MarkRequest): MarkWatcher => ({
  k: 'm',
  to: placeOfMarks(type),
  key,
  ttl: rememberFor,
});
