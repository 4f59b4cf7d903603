import type { Clock } from '../../clock.js';
import type { StoredAttempt } from '../../task/attempts.js';
import type { SaidNotes } from '../../task/notes.js';
import { decodeTaskMessage } from '../../wire/codec.js';
import { type Keyspace, utcDay, FAIR_GROUP_PREFIX, WAITING_GROUP } from '../../wire/keys.js';
import { TASK_STATES } from '../../wire/states.js';
import {
  MAX_COUNTED_GROUPS,
  type DayCount,
  type GroupSize,
  type InspectionRole,
  type QueueNumbers,
  type StoredTask,
} from '../inspection.js';
import { readNanoseconds, readScore } from './scripts/arguments.js';
import { attemptField, KEPT_FIELD, readKept } from './scripts/attempt-fields.js';
import type { RedisConnections } from './connection/connections.js';
import { readHold } from './scripts/holds.js';
import { pieceText, readHead } from './scripts/note-fields.js';
import { SHOWN_CHUNK_BYTES } from '../notes.js';
import { queueKeys } from './scripts/queue-keys.js';
import type { Scripts } from './scripts/scripts.js';

type SaidReply = readonly [] | readonly [Buffer, Buffer, Buffer, readonly Buffer[], readonly Buffer[]];

type Reply = readonly [
  message: Buffer,
  state: Buffer,
  result: Buffer,
  score: Buffer,
  hasResult: number,
  since: Buffer,
  waitlist: Buffer,
  said: SaidReply,
];

/** How many tasks of each state are measured. */
const SAMPLE_SIZE = 20;
/** Groups that one step reads, roughly. */
const GROUP_SCAN_COUNT = 200;

/** Reads queues and single tasks, over the connection `monitor`. */
export class RedisInspection implements InspectionRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  queues(): Promise<string[]> {
    return this.connections.run('monitor', 'SMEMBERS', (client) => client.smembers(this.keyspace.queues));
  }

  async hasQueue(queue: string): Promise<boolean> {
    const { queues } = this.keyspace;
    return (await this.connections.run('monitor', 'SISMEMBER', (client) => client.sismember(queues, queue))) === 1;
  }

  /** SSCAN may return a name twice. */
  async groups(queue: string): Promise<GroupSize[]> {
    const keys = this.keyspace.queue(queue);
    const sizes = new Map<string, number>();
    for (let cursor = '0'; ;) {
      const argv = [keys.groupPrefix, cursor, String(GROUP_SCAN_COUNT)];
      const reply = await this.scripts.run('monitor', 'groups', queueKeys('groups', keys), argv);
      const [next, found] = reply as [Buffer, (Buffer | number)[]];
      for (let i = 0; i < found.length; i += 2) sizes.set(String(found[i]), found[i + 1] as number);
      cursor = next.toString();
      if (cursor === '0') break;
    }
    const names = [...sizes.keys()].sort();
    return names.map((group) => ({ group, size: sizes.get(group) ?? 0 }));
  }

  async describeQueue(queue: string): Promise<QueueNumbers> {
    const keys = this.keyspace.queue(queue);
    const { pending, active, scheduled, retry, archived, completed, groups, paused, processed, failed } = keys;
    const now = this.clock.now();
    const day = utcDay(now);
    const reply = (await this.scripts.run(
      'monitor',
      'describeQueue',
      [
        pending,
        active,
        scheduled,
        retry,
        archived,
        completed,
        groups,
        paused,
        keys.processedOn(day),
        keys.failedOn(day),
        processed,
        failed,
        keys.fairRing,
        keys.fairHeld,
        keys.fairTotal,
        keys.held,
      ],
      [
        keys.taskPrefix,
        keys.groupPrefix,
        String(SAMPLE_SIZE),
        String(MAX_COUNTED_GROUPS),
        WAITING_GROUP,
        FAIR_GROUP_PREFIX,
      ],
    )) as readonly (number | Buffer)[];
    const at = (index: number): number => toCount(String(reply[index]));
    const age = (index: number): number => {
      const since = readNanoseconds(String(reply[index]));
      return since === undefined ? 0 : Math.max(0, now - since);
    };
    const ofLines = { waiting: at(19) + at(20), held: at(20) };
    return {
      pending: at(0) + at(16),
      active: at(1),
      scheduled: at(2),
      retry: at(3) - at(17),
      archived: at(4),
      completed: at(5),
      aggregating: at(6),
      waiting: at(15),
      held: at(17),
      groups: at(7),
      paused: at(8) > 0,
      memoryUsage: at(9),
      processed: at(10),
      failed: at(11),
      processedTotal: at(12),
      failedTotal: at(13),
      latency: age(14),
      oldestHeld: age(18),
      ...(ofLines.waiting > 0 && { keys: ofLines }),
    };
  }

  async countsOfDays(queue: string, days: readonly string[]): Promise<DayCount[]> {
    const keys = this.keyspace.queue(queue);
    const names = days.flatMap((day) => [keys.processedOn(day), keys.failedOn(day)]);
    const counts = await this.connections.run('monitor', 'MGET', (client) => client.mget(names));
    return days.map((day, index) => ({
      day,
      processed: toCount(counts[2 * index] ?? ''),
      failed: toCount(counts[2 * index + 1] ?? ''),
    }));
  }

  /** @throws UndecodableMessageError when the message cannot be decoded */
  async getTask(queue: string, id: string): Promise<StoredTask | undefined> {
    const keys = this.keyspace.queue(queue);
    const read = [keys.task(id), keys.scheduled, keys.retry, keys.waitingTasks];
    const argv = [id, WAITING_GROUP, FAIR_GROUP_PREFIX, String(SHOWN_CHUNK_BYTES)];
    const reply = await this.scripts.run('monitor', 'getTask', read, argv);
    if ((reply as unknown[]).length === 0) return undefined;
    const [bytes, stateText, result, score, hasResult, since, waitlist, said] = reply as Reply;
    const state = TASK_STATES.find((known) => known === stateText.toString());
    if (state === undefined) return undefined;
    return {
      message: decodeTaskMessage(bytes),
      state,
      nextProcessAt: score.length > 0 ? readScore(score.toString()) : undefined,
      pendingSince: state === 'pending' ? readNanoseconds(since.toString()) : undefined,
      held: readHold(state, since.toString(), waitlist.toString()),
      result: hasResult === 1 ? result : undefined,
      ...(said.length === 0 ? {} : { notes: readStored(said) }),
    };
  }

  /** What is dropped between the two reads is left out. */
  async attempts(queue: string, id: string): Promise<StoredAttempt[]> {
    const key = this.keyspace.queue(queue).task(id);
    const kept = await this.connections.run('monitor', 'HGET', (client) => client.hget(key, KEPT_FIELD));
    const numbers = readKept(kept);
    if (numbers.length === 0) return [];
    const fields = numbers.map(attemptField);
    const texts = await this.connections.run('monitor', 'HMGET', (client) => client.hmget(key, ...fields));
    return numbers.flatMap((n, index) => {
      const text = texts[index];
      return typeof text === 'string' ? [{ n, text }] : [];
    });
  }
}

function readStored([progress, log, , lines, chunks]: Exclude<SaidReply, readonly []>): SaidNotes {
  const { dropped } = readHead(log);
  return {
    progress: progress.length > 0 ? progress.toString() : undefined,
    log: lines.map((piece) => pieceText(piece) ?? ''),
    logDropped: dropped,
    chunks: chunks.map((piece) => pieceText(piece) ?? ''),
  };
}

/** A number in Redis; a counter with anything else counts as 0. */
const toCount = (text: string): number => Number(text) || 0;
