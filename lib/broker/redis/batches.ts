import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace, QueueKeys } from '../../wire/keys.js';
import {
  type BatchesRole,
  type BatchProgress,
  type Chunk,
  type NewBatch,
  CHUNK_SECONDS,
  checkBatch,
  checkMembers,
  checkReservation,
} from '../batches.js';
import type { EnqueueStatus } from '../enqueue-request.js';
import type { Caused, LinkedRequest } from '../links.js';
import type { RedisConnections } from './connection/connections.js';
import type { RedisLinks } from './links.js';
import { persist, type RedisProducer } from './producer.js';
import { nanoseconds } from './scripts/arguments.js';
import {
  encodeBatch,
  encodeMembers,
  type PartRecord,
  readBatch,
  readPart,
  type StoredBatch,
} from './scripts/batches.js';
import { readCaused } from './scripts/caused.js';
import { queueKeys } from './scripts/queue-keys.js';
import type { Argument } from './scripts/script-command.js';
import { SCRIPTS } from './scripts/script-registry.js';
import type { Scripts } from './scripts/scripts.js';

const RESENT = SCRIPTS.addMembers.argv.indexOf('resent');

const RESERVED = ['reserved', 'missing', 'ended'] as const;

/** The numbers that add-members.lua returns. */
const STATUS: Readonly<Record<number, EnqueueStatus>> = { 1: 'duplicate', 2: 'conflict' };

type Reply = [first: unknown, parcels: Buffer];

/** Batches: adds members over `produce`, all else over `monitor`. */
export class RedisBatches implements BatchesRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly links: RedisLinks,
    private readonly producer: RedisProducer,
  ) {}

  /** Lists its home and the queues of the callbacks, as nothing else may do so. */
  async open(home: string, batch: NewBatch): Promise<Caused> {
    checkBatch(batch);
    const keys = this.keyspace.queue(home);
    const argv = this.arguments(keys).concat(encodeBatch(batch, floorSeconds(this.clock.now())));
    const queues = [home, ...Object.values(batch.callbacks).map(({ message }) => message.queue)];
    await Promise.all(queues.flatMap((queue) => [this.producer.register(queue), this.links.register(queue)]));
    await persist(() => this.scripts.run('produce', 'openBatch', this.homeKeys('openBatch', keys, batch.id), argv));
    return { parcels: [] };
  }

  async reserve(
    home: string,
    id: string,
    requests: readonly { readonly queue: string; readonly count: number }[],
    byMember = false,
  ): Promise<{ readonly status: 'reserved' | 'missing' | 'ended'; readonly chunks: readonly Chunk[] }> {
    checkReservation(id, requests);
    const keys = this.keyspace.queue(home);
    const now = String(floorSeconds(this.clock.now()));
    const argv = [id, now, String(CHUNK_SECONDS), byMember ? '1' : '0'];
    for (const { queue, count } of requests) argv.push(queue, String(count));
    const run = () => this.scripts.run('produce', 'reserveMembers', [keys.batch(id), keys.timers], argv);
    const [status, ...bases] = (await persist(run)) as [number, ...number[]];
    const chunks = bases.map((base, at) => ({ batch: id, home, base, ...requests[at]! }));
    return { status: RESERVED[status]!, chunks };
  }

  async add(
    chunk: Chunk,
    requests: readonly LinkedRequest[],
  ): Promise<Caused & { readonly status: 'added' | 'void'; readonly statuses: readonly EnqueueStatus[] }> {
    checkMembers(chunk, requests);
    const { queue, batch, home, base } = chunk;
    const own = this.keyspace.queue(queue);
    const { locks, routes, rest } = encodeMembers(requests);
    const listed = [this.producer.register(queue), this.links.register(queue)];
    if (listed[0] || listed[1]) await Promise.all(listed);
    const keys = [own.links, own.timers, own.pending, own.scheduled, own.part(batch), own.partMade(batch)];
    const argv = this.arguments(own).concat([batch, home, String(base), '0', routes], rest);
    const run = (attempt: number) => {
      if (attempt > 1) argv[RESENT] = '1';
      return this.scripts.run('produce', 'addMembers', keys.concat(locks), argv);
    };
    const reply = (await persist(run)) as [] | [number[], Buffer];
    if (reply.length === 0) return { status: 'void', statuses: [], parcels: [] };
    const [refused, parcels] = reply;
    const statuses = new Array<EnqueueStatus>(requests.length).fill('enqueued');
    for (let i = 0; i < refused.length; i += 2) statuses[refused[i]! - 1] = STATUS[refused[i + 1]!]!;
    return { status: 'added', statuses, ...readCaused(queue, parcels) };
  }

  async confirm(
    home: string,
    id: string,
    chunks: readonly { readonly base: number; readonly created: number }[],
  ): Promise<Caused> {
    const keys = this.keyspace.queue(home);
    const pairs = chunks.flatMap(({ base, created }) => [String(base), String(created)]);
    const argv = this.arguments(keys).concat(id, pairs);
    const send = () => this.scripts.run('produce', 'confirmMembers', this.homeKeys('confirmMembers', keys, id), argv);
    return readCaused(home, (await persist(send)) as Buffer);
  }

  async close(home: string, id: string): Promise<Caused & { readonly status: 'closed' | 'missing' }> {
    const [exists, parcels] = await this.change('closeBatch', home, id);
    return { status: exists === 1 ? 'closed' : 'missing', ...readCaused(home, parcels) };
  }

  async progress(home: string, id: string): Promise<BatchProgress | undefined> {
    const key = this.keyspace.queue(home).batch(id);
    const stored = readBatch((await this.scripts.run('monitor', 'readBatch', [key], [])) as Buffer[]);
    return stored && this.describe(home, id, stored);
  }

  async batches(
    home: string,
    { offset, size }: { readonly offset: number; readonly size: number },
  ): Promise<BatchProgress[]> {
    const key = this.keyspace.queue(home).batches;
    const ids = await this.connections.run('monitor', 'ZREVRANGE', (client) =>
      client.zrevrange(key, offset, offset + size - 1),
    );
    const found = await Promise.all(ids.map((id) => this.progress(home, id)));
    return found.filter((progress) => progress !== undefined);
  }

  async delete(home: string, id: string): Promise<Caused & { readonly status: 'deleted' | 'missing' | 'running' }> {
    const [status, parcels] = await this.change('deleteBatch', home, id);
    return {
      status: String(status) as 'deleted' | 'missing' | 'running',
      ...readCaused(home, parcels),
    };
  }

  /** Reads the parts where they are: the home knows them later. Of a part that is lost, the home is asked what it knew. */
  private async describe(home: string, id: string, batch: StoredBatch): Promise<BatchProgress> {
    const parts = await Promise.all(
      batch.parts.map(async ({ queue, reported }) => {
        const part = await this.part(queue, id);
        return { queue, ...(part ? { ...part, lost: reported.lost, made: part.made + reported.lost } : reported) };
      }),
    );
    const sum = (read: (part: PartRecord) => number): number => parts.reduce((total, part) => total + read(part), 0);
    const total = sum(({ made }) => made);
    const succeeded = sum(({ ok }) => ok);
    const failed = sum(({ dead, lost }) => dead + lost);
    const failedIn = parts.flatMap(({ queue, dead }) => (dead > 0 ? [queue] : [])).sort();
    const { name, state, openedAt, endedAt } = batch;
    const pending = Math.max(0, total - succeeded - failed);
    return { home, id, name, state, total, pending, succeeded, failed, failedIn, openedAt, endedAt };
  }

  private async part(queue: string, id: string): Promise<PartRecord | undefined> {
    const key = this.keyspace.queue(queue).part(id);
    const fields = await this.connections.run('monitor', 'HMGET', (client) => client.hmget(key, 'made', 'ok', 'dead'));
    return readPart(fields);
  }

  private change(script: 'closeBatch' | 'deleteBatch', home: string, id: string): Promise<Reply> {
    const keys = this.keyspace.queue(home);
    const argv = this.arguments(keys).concat(id);
    return persist(() => this.scripts.run('produce', script, this.homeKeys(script, keys, id), argv)) as Promise<Reply>;
  }

  /** The KEYS of a script that changes a batch at its home. */
  private homeKeys(
    script: 'openBatch' | 'confirmMembers' | 'closeBatch' | 'deleteBatch',
    keys: QueueKeys,
    id: string,
  ): string[] {
    const own = queueKeys('deliver', keys).concat(keys.batch(id));
    return script === 'openBatch' || script === 'deleteBatch' ? own.concat(keys.batches) : own;
  }

  /** The arguments that every script of links begins with. */
  private arguments(keys: QueueKeys): Argument[] {
    const now = this.clock.now();
    return [keys.taskPrefix, String(floorSeconds(now)), nanoseconds(now)];
  }
}
