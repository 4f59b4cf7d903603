import type { Redis } from 'ioredis';
import type { QueueSnapshot, ScoredId, Snapshot, TaskSnapshot } from '../../lib/broker/memory/snapshot.js';
import { compareSets } from '../../lib/broker/memory/snapshot.js';
import { compareIds } from '../../lib/broker/sorted-set.js';
import type { Clock } from '../../lib/clock.js';
import { decodeTaskMessage } from '../../lib/wire/codec.js';
import { DEFAULT_KEY_PREFIX, Keyspace, type QueueKeys } from '../../lib/wire/keys.js';
import { STORED_STATES, type StoredState } from '../../lib/wire/states.js';

type Draft = { -readonly [K in keyof QueueSnapshot]: QueueSnapshot[K] };

const FIELDS = new Set([
  'msg',
  'state',
  'pending_since',
  'unique_key',
  'group',
  'result',
  'waits',
  'held_by',
  // Of enqueue-unique.lua:
  'trigger',
  'start_by',
  'superseded_by',
]);

/** What links add to a task, see lua/shared/waits.lua and link-fields.lua. */
const LINK_FIELD = /^(?:after|left|cancelled|step|w\d+)$/;
/** What the steps of handlers have stored, and signals for them: see scripts/step-fields.ts. */
const STEPS_FIELD = /^(did:|signal:|answer:|call:|awaits$)/;
/** What handlers have said, and the history of attempts: see scripts/note-fields.ts and scripts/attempt-fields.ts. */
const NOTE_FIELD = /^(note|attempt):/;

/** Keys of links, after the tag: the tests of links look at them. */
const LINK_KEY =
  /^(?:links|outbox|timers|links_lease|links_progress|runs|running|batches|g:asynq:waiting|(?:early|followed|mark|waiters|run|batch|part|offer):.*)$/s;

/** The place of the marks of a type is no queue. */
const isLinkKey = (key: string, prefix: string): boolean =>
  key.startsWith(`${prefix}:{~`) || LINK_KEY.test(key.slice(key.indexOf('}:') + 2));

/** An empty queue. */
export const emptyDraft = (): Draft => ({
  pending: [],
  active: [],
  lease: [],
  scheduled: [],
  retry: [],
  archived: [],
  completed: [],
  groups: {},
  sets: [],
  groupNames: [],
  waitlists: {},
  held: [],
  tasks: {},
  locks: {},
  schedules: {},
  pausedAt: undefined,
  processed: 0,
  failed: 0,
  processedOn: {},
  failedOn: {},
});

/** Adds an own property whatever the name: `__proto__` is an id like any other. */
const put = (record: object, name: string, value: unknown): void =>
  void Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true });

async function allKeys(node: Redis): Promise<string[]> {
  const keys = new Set<string>();
  let cursor = '0';
  do {
    const [next, page] = await node.scan(cursor, 'COUNT', 5000);
    for (const key of page) keys.add(key);
    cursor = next;
  } while (cursor !== '0');
  return [...keys];
}

async function scored(node: Redis, key: string): Promise<ScoredId[]> {
  const flat = (await node.call('ZRANGE', key, '0', '-1', 'WITHSCORES')) as unknown[];
  const pairs = Array.isArray(flat[0]) ? (flat as [string, unknown][]) : pairUp(flat as string[]);
  return pairs.map(([id, score]) => [id, Number(score)]);
}

const pairUp = (flat: readonly string[]): [string, string][] =>
  flat.flatMap((id, index): [string, string][] => (index % 2 ? [] : [[id, flat[index + 1] ?? '']]));

/**
 * The milliseconds of `pending_since`, which must be a whole number of nanoseconds spelled out in
 * full.
 */
function pendingSince(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{13}000000$/.test(text)) throw new Error(`pending_since is "${text}", not nanoseconds`);
  return Number(text.slice(0, -6));
}

function describeTask(key: string, hash: Readonly<Record<string, Buffer>>): TaskSnapshot {
  const unknown = Object.keys(hash).filter(
    (field) => ![LINK_FIELD, STEPS_FIELD, NOTE_FIELD].some((known) => known.test(field)) && !FIELDS.has(field),
  );
  if (unknown.length > 0) throw new Error(`the task "${key}" has unknown fields: ${unknown.join(', ')}`);
  const state = hash['state']?.toString() as StoredState;
  if (!STORED_STATES.includes(state)) throw new Error(`the task "${key}" is in the state "${state}"`);
  if (!hash['msg']) throw new Error(`the task "${key}" has no message`);
  return {
    state,
    message: decodeTaskMessage(hash['msg']),
    result: hash['result'],
    uniqueKey: hash['unique_key']?.toString(),
    group: hash['group']?.toString(),
    pendingSince: pendingSince(hash['pending_since']?.toString()),
  };
}

/**
 * Reads one key into the draft of its queue. Redis runs on real time, so what the clock says has
 * expired is left out.
 */
class QueueReader {
  private readonly found = emptyDraft();
  /** Full names of aggregation sets, and their deadlines. */
  private claimed: readonly ScoredId[] = [];
  private used: readonly string[] = [];

  constructor(
    private readonly keys: QueueKeys,
    private readonly clock: Clock,
  ) {}

  /** What was read, with the claimed sets apart from the groups. */
  get draft(): Draft {
    const { keys, found, claimed, used } = this;
    const unnamed = Object.keys(found.waitlists).filter((name) => !used.includes(name));
    if (unnamed.length > 0)
      throw new Error(`tasks wait in ${unnamed.join(', ')}, and ${keys.waitlists} does not say so`);
    const names = new Map(claimed.map(([key, deadline]) => [key.slice(keys.groupPrefix.length), deadline]));
    const groups = {};
    const members = new Map<string, readonly ScoredId[]>();
    for (const [name, ids] of Object.entries(found.groups)) {
      if (names.has(name)) members.set(name, ids);
      else put(groups, name, ids);
    }
    const sets = [...names].map(([name, deadline]) => {
      return { group: name.slice(0, name.lastIndexOf(':')), deadline, members: members.get(name) ?? [] };
    });
    return { ...found, groups, sets: sets.sort(compareSets) };
  }

  async read(node: Redis, key: string): Promise<void> {
    const { keys, found: draft } = this;
    const set = (['lease', 'scheduled', 'retry', 'archived', 'completed'] as const).find((name) => keys[name] === key);
    if (set) draft[set] = await scored(node, key);
    else if (key === keys.aggregationSets) this.claimed = await scored(node, key);
    else if (key === keys.pending) draft.pending = (await node.lrange(key, 0, -1)).reverse();
    else if (key === keys.active) draft.active = (await node.lrange(key, 0, -1)).sort(compareIds);
    else if (key === keys.groups) draft.groupNames = (await node.smembers(key)).sort(compareIds);
    else if (key === keys.paused) draft.pausedAt = Number(await node.get(key));
    else if (key === keys.processed) draft.processed = Number(await node.get(key));
    else if (key === keys.failed) draft.failed = Number(await node.get(key));
    else await this.readNamed(node, key);
  }

  private async readNamed(node: Redis, key: string): Promise<void> {
    const { keys, found: draft } = this;
    const after = (prefix: string): string | undefined =>
      key.startsWith(prefix) ? key.slice(prefix.length) : undefined;
    const id = after(keys.taskPrefix);
    const group = after(keys.groupPrefix);
    const entry = after(keys.schedulePrefix);
    const line = after(keys.waiting(''));
    const day = after(keys.processedOn(''));
    const failedDay = after(keys.failedOn(''));
    if (id !== undefined) put(draft.tasks, id, describeTask(key, await node.hgetallBuffer(key)));
    else if (group !== undefined) put(draft.groups, group, await scored(node, key));
    else if (day !== undefined) await this.readDay(node, key, draft.processedOn, day);
    else if (failedDay !== undefined) await this.readDay(node, key, draft.failedOn, failedDay);
    else if (entry !== undefined) put(draft.schedules, entry, Number(await node.hget(key, 'mark')));
    else if (after(`${keys.base}unique:`) !== undefined) await this.readLock(node, key);
    else if (after(`${keys.base}rate:`) !== undefined || key === keys.delayedGroups) await requireEnd(node, key);
    else if (line !== undefined) await this.readLine(node, key, line);
    else if (key === keys.waitlists) await this.readWaitlists(node, key);
    else if (key === keys.held) await this.readHeld(node, key);
    else if (key !== keys.senders) throw new Error(`the key "${key}" is none of asynq's`);
  }

  /** Each waitlist with tasks is named there. */
  private async readWaitlists(node: Redis, key: string): Promise<void> {
    await requireEnd(node, key);
    this.used = await node.smembers(key);
  }

  private async readHeld(node: Redis, key: string): Promise<void> {
    await requireEnd(node, key);
    this.found.held = await node.zrange(key, '0', '-1');
  }

  private async readLine(node: Redis, key: string, line: string): Promise<void> {
    await requireEnd(node, key);
    put(this.found.waitlists, line, await node.zrange(key, '0', '-1'));
  }

  private async readDay(node: Redis, key: string, days: object, day: string): Promise<void> {
    const expiresAt = Math.round((Date.now() + (await node.pttl(key))) / 1000) * 1000;
    if (expiresAt > this.clock.now()) put(days, day, Number(await node.get(key)));
  }

  private async readLock(node: Redis, key: string): Promise<void> {
    const [owner, expiresIn] = await Promise.all([node.get(key), node.pttl(key)]);
    if (expiresIn === -1) throw new Error(`the lock "${key}" does not expire`);
    if (owner !== null) put(this.found.locks, key, { owner, expiresIn });
  }
}

/** Keys of this library that are no state of a task. */
async function requireEnd(node: Redis, key: string): Promise<void> {
  if ((await node.pttl(key)) === -1) throw new Error(`the key "${key}" does not expire`);
}

/**
 * The queue of a key: one that was announced, or one that is only paused or has periodic entries
 * that have not fired.
 */
function queueOf(key: string, prefix: string, announced: readonly string[]): string {
  const known = announced.filter((name) => key.startsWith(`${prefix}:{${name}}:`));
  const paused = new RegExp(`:\\{(.*)\\}:(?:paused$|periodic:)`, 's').exec(key)?.[1];
  const queue = known.sort((a, b) => b.length - a.length)[0] ?? paused;
  if (queue === undefined) throw new Error(`the key "${key}" belongs to a queue that was not announced`);
  return queue;
}

/**
 * All that is stored under the prefix, in the shape of the memory broker's snapshot. Anything asynq
 * would not expect there is an error: an unknown key or hash field, a task without message, a lock
 * without end.
 *
 * @param nodes the one server, or every master of a cluster
 */
export async function dumpRedis(
  nodes: readonly Redis[],
  clock: Clock,
  prefix: string = DEFAULT_KEY_PREFIX,
): Promise<Snapshot> {
  const keyspace = new Keyspace(prefix);
  const found = await Promise.all(nodes.map(async (node) => ({ node, keys: await allKeys(node) })));
  const home = found.find(({ keys }) => keys.includes(keyspace.queues));
  const announced = home ? await home.node.smembers(keyspace.queues) : [];
  const readers = new Map<string, QueueReader>();
  const reader = (queue: string): QueueReader => {
    let one = readers.get(queue);
    if (!one) readers.set(queue, (one = new QueueReader(keyspace.queue(queue), clock)));
    return one;
  };
  for (const queue of announced) reader(queue);
  const reads = found.flatMap(({ node, keys }) =>
    keys
      .filter((key) => key.startsWith(`${prefix}:{`) && !isLinkKey(key, prefix))
      .map((key) => reader(queueOf(key, prefix, announced)).read(node, key)),
  );
  await Promise.all(reads);
  return Object.fromEntries([...readers].map(([queue, { draft }]) => [queue, draft]));
}
