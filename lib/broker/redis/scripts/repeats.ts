import { decodeTaskMessage, encodeTaskMessage } from '../../../wire/codec.js';
import type { QueueKeys } from '../../../wire/keys.js';
import { TASK_STATES, type TaskState } from '../../../wire/states.js';
import type { Owner, RepeatPolicy, RepeatReply, RepeatRequest, StoredLock } from '../../uniqueness.js';
import { readScore, requireSeconds } from './arguments.js';
import { PackedReader } from './packed-reader.js';
import { queueKeys } from './queue-keys.js';
import type { Argument } from './script-command.js';

/** The letters of enqueue-unique.lua. */
const LETTER: Readonly<Record<RepeatPolicy, string>> = {
  reject: 'r',
  existing: 'e',
  replace: 'p',
  debounce: 'd',
  latest: 'l',
  supersede: 's',
  once: 'o',
};

/** A call of enqueue-unique.lua. */
export interface EncodedRepeats {
  readonly keys: string[];
  /** A letter per request. */
  readonly policies: string;
  /** The arguments after `policies`. */
  readonly rest: Argument[];
}

/** Encodes, and so checks, everything before sending. */
export function encodeRepeats(queue: QueueKeys, requests: readonly RepeatRequest[]): EncodedRepeats {
  const keys = queueKeys('enqueueUnique', queue);
  const locks: string[] = [];
  const rest: Argument[] = [];
  let policies = '';
  for (const { message, processAt, repeat } of requests) {
    const { policy, lock, ttl, limit } = repeat;
    const task = `of task "${message.id}"`;
    const key = queue.taskPrefix + message.id;
    keys.push(key);
    locks.push(lock === '' ? key : lock);
    policies += LETTER[policy];
    rest.push(
      encodeTaskMessage(message),
      lock === '' ? '' : requireSeconds(ttl, `ttl of the lock ${task}`, 1),
      processAt === undefined ? '' : requireSeconds(processAt, `processAt ${task}`),
      limit === undefined ? '' : requireSeconds(limit, `limit ${task}`),
    );
  }
  return { keys: keys.concat(locks), policies, rest };
}

const CODES: readonly (RepeatReply['status'] | undefined)[] = [
  undefined,
  'duplicate',
  'conflict',
  'existing',
  'replaced',
  'enqueued',
];
const ENQUEUED: RepeatReply = { status: 'enqueued' };

/** @param packed what enqueue-unique.lua says of some of the requests */
export function readRepeats(count: number, packed: Buffer): RepeatReply[] {
  const replies = Array.from({ length: count }, () => ENQUEUED);
  const reader = new PackedReader(packed);
  while (reader.more()) {
    const [index, code] = [reader.count(), reader.count()];
    const owner = readOwner(reader);
    const score = reader.text();
    const processAt = score === '' ? undefined : readScore(score);
    replies[index - 1] = { status: CODES[code]!, owner: { ...owner, processAt } };
  }
  return replies;
}

/** @param packed what describe-locks.lua says of each lock */
export function readLocks(locks: readonly string[], packed: Buffer): StoredLock[] {
  const reader = new PackedReader(packed);
  return locks.flatMap((lock) => {
    const id = reader.text();
    const left = Number(reader.text());
    const owner = readStanding(reader, id);
    return id === '' || left === -2 ? [] : { lock, owner, expiresIn: left < 0 ? undefined : left };
  });
}

const readOwner = (reader: PackedReader): Owner => readStanding(reader, reader.text());

function readStanding(reader: PackedReader, id: string): Owner {
  const state = reader.text();
  const message = reader.view();
  return {
    id,
    state: TASK_STATES.find((one): one is TaskState => one === state),
    message: message.length === 0 ? undefined : readMessage(message),
  };
}

/** `undefined` for a damaged one. */
function readMessage(bytes: Buffer) {
  try {
    return decodeTaskMessage(bytes);
  } catch {
    return undefined;
  }
}
