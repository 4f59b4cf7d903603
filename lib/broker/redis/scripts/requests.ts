import { encodeTaskMessage } from '../../../wire/codec.js';
import type { QueueKeys } from '../../../wire/keys.js';
import type { EnqueueRequest } from '../../broker.js';
import { requireSeconds } from './arguments.js';
import { queueKeys } from './queue-keys.js';
import type { Argument } from './script-command.js';

/** A batch of requests in the form of enqueue.lua. */
export interface EncodedRequests {
  readonly keys: string[];
  readonly taskPrefix: string;
  /** A letter per request. */
  readonly routes: string;
  /** The arguments after `routes`. */
  readonly rest: Argument[];
}

/** Encodes, and so checks, everything before sending. */
export function encodeRequests(queue: QueueKeys, requests: readonly EnqueueRequest[]): EncodedRequests {
  const keys = queueKeys('enqueue', queue);
  const messages: Argument[] = [];
  const furtherKeys: string[] = [];
  const furtherArguments: string[] = [];
  let routes = '';
  for (let i = 0; i < requests.length; i++) {
    const request = requests[i]!;
    const { message, processAt, uniqueTtl } = request;
    keys.push(queue.taskPrefix + message.id);
    messages.push(encodeTaskMessage(message));
    if (uniqueTtl === undefined && processAt === undefined && message.groupKey === '') routes += 'p';
    else routes += encodePlace(queue, request, furtherKeys, furtherArguments);
  }
  if (/l/i.test(routes)) furtherKeys.push(queue.delayedGroups);
  return {
    keys: keys.concat(furtherKeys),
    taskPrefix: queue.taskPrefix,
    routes,
    rest: messages.concat(furtherArguments),
  };
}

/** With a time and a group, the task is scheduled and joins the group then. */
function encodePlace(
  queue: QueueKeys,
  { message, processAt, uniqueTtl }: EnqueueRequest,
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
  }
  return uniqueTtl === undefined ? route : route.toUpperCase();
}
