import { decodeTaskMessage, encodeTaskMessage } from '../../../wire/codec.js';
import type { QueueKeys } from '../../../wire/keys.js';
import type { TaskMessage } from '../../../wire/message.js';
import { TASK_STATES, type TaskState } from '../../../wire/states.js';
import type { Full } from '../../enqueue-request.js';
import type { RepeatPolicy, RepeatReply, RepeatRequest, StoredLock } from '../../uniqueness.js';
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
  /** The letters of all policies. */
  readonly policies: string;
  /** The arguments after the named ones. */
  readonly rest: Argument[];
}

/** Encodes, and so checks, everything before sending. */
export function encodeRepeats(queue: QueueKeys, requests: readonly RepeatRequest[]): EncodedRepeats {
  const keys = queueKeys('enqueueUnique', queue);
  const locks: string[] = [];
  const rest: Argument[] = [];
  const runs: string[] = [];
  let policies = '';
  for (let i = 0; i < requests.length; i++) {
    const request = requests[i]!;
    const { message, repeat } = request;
    const key = queue.taskPrefix + message.id;
    keys.push(key);
    locks.push(repeat.lock === '' ? key : repeat.lock);
    rest.push(encodeTaskMessage(message));
    const next = requests[i + 1];
    if (next && isSame(request, next)) continue;
    pushRun(runs, i + 1, request);
    if (!policies.includes(LETTER[repeat.policy])) policies += LETTER[repeat.policy];
  }
  return { keys: keys.concat(locks), policies, rest: rest.concat(runs) };
}

/** Whether two have the same policy and times. Only `once` has no lock. */
const isSame = (one: RepeatRequest, other: RepeatRequest): boolean =>
  one.repeat.policy === other.repeat.policy &&
  one.repeat.ttl === other.repeat.ttl &&
  one.processAt === other.processAt &&
  one.repeat.limit === other.repeat.limit;

/** @param last the index of the last task of the run, from 1 */
function pushRun(runs: string[], last: number, { message, processAt, repeat }: RepeatRequest): void {
  const { policy, lock, ttl, limit } = repeat;
  const task = `of task "${message.id}"`;
  runs.push(
    String(last),
    LETTER[policy],
    lock === '' ? '' : requireSeconds(ttl, `ttl of the lock ${task}`, 1),
    processAt === undefined ? '' : requireSeconds(processAt, `processAt ${task}`),
    limit === undefined ? '' : requireSeconds(limit, `limit ${task}`),
  );
}

const FULL = 6;
const CODES: readonly (RepeatReply['status'] | undefined)[] = [
  undefined,
  'duplicate',
  'conflict',
  'existing',
  'replaced',
  'enqueued',
];
/** Codes without state and score: existing, with a message, in such a state. */
const FOUND_IN = new Map<number, TaskState>([
  [7, 'pending'],
  [8, 'active'],
  [9, 'completed'],
]);
const MOVED = 10;
const ENQUEUED: RepeatReply = { status: 'enqueued' };

/**
 * @param packed what enqueue-unique.lua says of some of the requests
 * @param messages of the existing tasks
 */
export function readRepeats(
  requests: readonly RepeatRequest[],
  packed: Buffer,
  messages: readonly Buffer[],
): (RepeatReply | Full)[] {
  const replies: (RepeatReply | Full)[] = requests.map(() => ENQUEUED);
  const reader = new PackedReader(packed);
  let found = 0;
  const nextMessage = (id: string): TaskMessage | undefined => readMessage(messages[found++]!, id);
  while (reader.more()) {
    const index = reader.count() - 1;
    replies[index] = readRepeat(reader, requests[index]!, nextMessage);
  }
  return replies;
}

function readRepeat(
  reader: PackedReader,
  { processAt: wanted }: RepeatRequest,
  nextMessage: (id: string) => TaskMessage | undefined,
): RepeatReply | Full {
  const code = reader.count();
  const id = reader.text();
  const known = FOUND_IN.get(code);
  if (known) return { status: 'existing', owner: { id, state: known, message: nextMessage(id), processAt: undefined } };
  if (code === MOVED) {
    const state = wanted === undefined ? 'pending' : 'scheduled';
    return { status: 'replaced', owner: { id, state, message: undefined, processAt: wanted } };
  }
  const status = CODES[code]!;
  const state = readState(reader.text());
  const score = reader.text();
  if (code === FULL) return { pending: Number(score) };
  const message = status === 'existing' ? nextMessage(id) : undefined;
  return { status, owner: { id, state, message, processAt: score === '' ? undefined : readScore(score) } };
}

/** @param packed what describe-locks.lua says of each lock */
export function readLocks(locks: readonly string[], packed: Buffer): StoredLock[] {
  const reader = new PackedReader(packed);
  return locks.flatMap((lock) => {
    const id = reader.text();
    const left = Number(reader.text());
    const owner = { id, state: readState(reader.text()), message: readMessage(reader.view(), id) };
    return id === '' || left === -2 ? [] : { lock, owner, expiresIn: left < 0 ? undefined : left };
  });
}

const readState = (text: string): TaskState | undefined => TASK_STATES.find((one): one is TaskState => one === text);

/** `undefined` for none, or a damaged one. */
function readMessage(bytes: Buffer, id: string): TaskMessage | undefined {
  if (bytes.length === 0) return undefined;
  try {
    return decodeTaskMessage(bytes, 0, bytes.length, id);
  } catch {
    return undefined;
  }
}
