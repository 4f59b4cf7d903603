import { encodeTaskMessage } from '../../../wire/codec.js';
import type { QueueKeys } from '../../../wire/keys.js';
import { FAIRNESS_HEADER, fairnessOf } from '../../../wire/fairness.js';
import type { EnqueueRequest } from '../../broker.js';
import { requireSeconds } from './arguments.js';
import { fairArguments, fairKeys, queueKeys } from './queue-keys.js';
import type { Argument } from './script-command.js';

/** A batch of requests in the form of enqueue.lua. */
export interface EncodedRequests {
  readonly keys: string[];
  readonly taskPrefix: string;
  /** A letter per request. */
  readonly routes: string;
  /** The arguments after `routes`. */
  readonly rest: Argument[];
  /** What creates them, unless enqueue.lua does. */
  readonly script?: 'enqueueFair';
}

/**
 * Encodes, and so checks, everything before sending.
 *
 * @param isFair tasks with a key wait in its line
 */
export function encodeRequests(queue: QueueKeys, requests: readonly EnqueueRequest[], isFair = false): EncodedRequests {
  const keys = queueKeys('enqueue', queue);
  const messages: Argument[] = [];
  const furtherKeys: string[] = [];
  const furtherArguments: string[] = [];
  let routes = '';
  let joinsLater = false;
  let isInLine = false;
  for (let i = 0; i < requests.length; i++) {
    const request = requests[i]!;
    const { message, processAt, uniqueTtl } = request;
    keys.push(queue.taskPrefix + message.id);
    messages.push(encodeTaskMessage(message));
    if (!isFair && uniqueTtl === undefined && processAt === undefined && message.groupKey === '') {
      routes += 'p';
      continue;
    }
    const route = encodePlace(queue, request, isFair, furtherKeys, furtherArguments);
    routes += route;
    joinsLater ||= route === 'l' || route === 'L';
    isInLine ||= route === 'f' || route === 'F';
  }
  if (joinsLater) furtherKeys.push(queue.delayedGroups);
  return {
    keys: keys.concat(furtherKeys, isInLine ? fairKeys(queue) : []),
    taskPrefix: queue.taskPrefix,
    routes,
    rest: messages.concat(furtherArguments, isInLine ? fairArguments(queue) : []),
    ...(isInLine && { script: 'enqueueFair' }),
  };
}

/** With a time and a group, the task is scheduled and joins the group then. */
function encodePlace(
  queue: QueueKeys,
  { message, processAt, uniqueTtl }: EnqueueRequest,
  isFair: boolean,
  keys: string[],
  argv: string[],
): string {
  const task = `of task "${message.id}"`;
  let route = 'p';
  if (uniqueTtl !== undefined) {
    keys.push(message.uniqueKey);
    argv.push(requireSeconds(uniqueTtl, `uniqueTtl ${task}`, 1));
  }
  if (processAt !== undefined) {
    argv.push(requireSeconds(processAt, `processAt ${task}`));
    if (message.groupKey !== '') argv.push(message.groupKey);
    route = message.groupKey === '' ? 's' : 'l';
  } else if (message.groupKey !== '') {
    keys.push(queue.group(message.groupKey));
    argv.push(message.groupKey);
    route = 'g';
  } else if (isFair && fairnessOf(message.headers)) {
    argv.push(message.headers![FAIRNESS_HEADER]!);
    route = 'f';
  }
  return uniqueTtl === undefined ? route : route.toUpperCase();
}
