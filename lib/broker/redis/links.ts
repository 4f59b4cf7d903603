import { type Clock, floorSeconds } from '../../clock.js';
import { UndecodableMessageError } from '../../errors.js';
import type { Keyspace } from '../../wire/keys.js';
import type { EnqueueStatus } from '../broker.js';
import type { BoundedStatus } from '../enqueue-request.js';
import {
  type Caused,
  type Delivered,
  type LinkedRequest,
  type LinksRole,
  type Parcel,
  type PassReply,
  type StoredWait,
  WAITING_GROUP,
  type WatchRequest,
} from '../links.js';
import { persist } from './producer.js';
import type { RowRange } from './rows.js';
import type { RedisConnections } from './connection/connections.js';
import { QueueRegistrar } from './queue-registrar.js';
import { nanoseconds } from './scripts/arguments.js';
import { encodeLinkedRequests } from './scripts/linked-requests.js';
import type { RedisClient } from './connection/client-factory.js';
import { readWait } from './scripts/waits.js';
import { joined, readCaused } from './scripts/caused.js';
import { queueKeys } from './scripts/queue-keys.js';
import type { Argument } from './scripts/script-command.js';
import type { Scripts } from './scripts/scripts.js';

const STATUS: readonly EnqueueStatus[] = ['enqueued', 'duplicate', 'conflict'];

/** @param status as enqueue-linked.lua returns it */
const statusOf = (status: number): BoundedStatus => STATUS[status] ?? { pending: -1 - status };

type Created<Status> = Caused & { readonly statuses: readonly Status[] };

const NOTHING: Caused = { parcels: [] };

/** Tasks that one call checks. */
const CHECKED_AT_ONCE = 500;
/** What one pass deals with, of each kind: some milliseconds of Redis. */
const KEPT_AT_ONCE = 500;
/** Bodies and data of old parcels that one pass returns. */
const BYTES_AT_ONCE = 4 * 1024 * 1024;

/** How long a parcel waits that is not understood, as keep.lua has it: servers may be updated meanwhile. */
const POSTPONED_SECONDS = 60;

/**
 * How long a place is looked at that is listed no more. A process that has listed it relies on that for
 * a minute, and may store something there all the time.
 */
const LOOK_AGAIN_MS = 120_000;
/** On average; by each process that keeps places. */
const SEARCH_EVERY_MS = 600_000;
/** Once the connection was lost, at most: not all processes at once. */
const SEARCH_AFTER_LOSS_MS = 60_000;

const watchRequest = ({ id, waiting, missing }: WatchRequest): string =>
  JSON.stringify({ id, w: { k: 'w', to: waiting.queue, id: waiting.id, n: waiting.n, d: waiting.until }, missing });

/** Links between tasks: enqueues over `produce`, all else over `monitor`. */
export class RedisLinks implements LinksRole {
  private readonly registrar: QueueRegistrar;
  private nextSearch = 0;
  /** Places that were listed, and when this process has seen that. */
  private readonly seen = new Map<string, number>();
  /** How often the connection was lost that carries parcels, and how often it had been when a parcel was delivered. */
  private losses = 0;
  private readonly delivered = new WeakMap<Parcel, number>();

  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    /** Lists a queue, as RedisProducer.register. */
    private readonly list: (queue: string) => Promise<void> | undefined,
  ) {
    const add = (place: string) => connections.run('produce', 'SADD', (client) => client.sadd(keyspace.linked, place));
    this.registrar = new QueueRegistrar(connections, clock, (place) => persist(() => add(place)));
    connections.onStateChange((purpose, state) => {
      if (purpose === 'monitor' && state === 'lost') this.doubt();
    });
  }

  /** The Redis behind the next connection may not have what was written last. */
  private doubt(): void {
    this.losses++;
    const soon = this.clock.now() + SEARCH_AFTER_LOSS_MS * Math.random();
    if (this.nextSearch > 0) this.nextSearch = Math.min(this.nextSearch, soon);
  }

  /** Lists the place for the keepers, when that is due. Await a returned promise before the first write. */
  register(place: string): Promise<void> | undefined {
    return this.registrar.register(place);
  }

  enqueue(queue: string, requests: readonly LinkedRequest[]): Promise<Created<EnqueueStatus>> {
    return this.enqueueBounded(queue, requests, undefined) as Promise<Created<EnqueueStatus>>;
  }

  async enqueueBounded(
    queue: string,
    requests: readonly LinkedRequest[],
    maxPending: number | undefined,
  ): Promise<Created<BoundedStatus>> {
    if (requests.length === 0) return { statuses: [], parcels: [] };
    return (await this.create(queue, requests, [], maxPending)) as Created<BoundedStatus>;
  }

  /** Those of an outbox, once; or the highest number, when the first row was brought before: see RowsRole. */
  enqueueRows(
    queue: string,
    requests: readonly LinkedRequest[],
    rows: RowRange,
  ): Promise<Created<EnqueueStatus> | number> {
    return this.create(queue, requests, rows) as Promise<Created<EnqueueStatus> | number>;
  }

  private async create(
    queue: string,
    requests: readonly LinkedRequest[],
    rows: RowRange | [] = [],
    maxPending?: number,
  ): Promise<Created<BoundedStatus> | number> {
    encodeLinkedRequests(requests, false); // throws before anything is written
    await Promise.all([this.list(queue), this.register(queue)]);
    const first = this.arguments(queue);
    const of = this.keyspace.queue(queue);
    const reply = await persist(async (attempt) => {
      const argv = first.concat(encodeLinkedRequests(requests, attempt > 1, maxPending), rows);
      const keys = queueKeys('enqueueLinked', of);
      if (rows.length > 0) keys.push(of.senders);
      return this.scripts.run('produce', 'enqueueLinked', keys, argv);
    });
    if (!Array.isArray(reply)) return Number(reply);
    const [statuses, parcels] = reply as [number[], Buffer];
    return { statuses: statuses.map(statusOf), ...readCaused(queue, parcels) };
  }

  async watch(
    queue: string,
    requests: readonly WatchRequest[],
  ): Promise<Caused & { readonly found: readonly ('watched' | 'missing')[] }> {
    await this.register(queue);
    const argv = this.arguments(queue).concat(requests.map(watchRequest));
    const keys = queueKeys('watch', this.keyspace.queue(queue));
    // Sent again, it finds what the first call has registered.
    const reply = await persist(() => this.scripts.run('produce', 'watch', keys, argv));
    const [found, parcels] = reply as [Buffer, Buffer];
    return {
      found: Array.from(String(found), (digit) => (digit === '1' ? 'watched' : 'missing')),
      ...readCaused(queue, parcels),
    };
  }

  async deliver(place: string, parcels: readonly Parcel[]): Promise<Delivered> {
    const registered = this.register(place);
    if (registered) await registered;
    const argv = this.arguments(place).concat(parcels.flatMap(({ body, data }) => [body, data]));
    const keys = queueKeys('deliver', this.keyspace.queue(place));
    const reply = (await this.scripts.run('monitor', 'deliver', keys, argv)) as [Buffer, number[], Buffer, Buffer];
    for (const parcel of parcels) this.delivered.set(parcel, this.losses);
    const [caused, unknown, kind, damage] = reply;
    const done = { ...readCaused(place, caused), ...damaged(place, damage) };
    if (unknown.length === 0) return done;
    return { ...done, unknown: { parcels: unknown.map((n) => parcels[n]!), error: unknownKind(place, String(kind)) } };
  }

  /**
   * A Redis that was restarted meanwhile, or another in its place, may have lost what the delivery has written: then the parcel stays, and is
   * delivered again.
   */
  async acknowledge(place: string, parcels: readonly Parcel[]): Promise<void> {
    await this.connections.ready('monitor');
    const kept = parcels.filter((parcel) => (this.delivered.get(parcel) ?? this.losses) === this.losses);
    if (kept.length === 0) return;
    const argv = kept.flatMap(({ key, body }) => [key, body]);
    await this.scripts.run('monitor', 'acknowledge', [this.keyspace.queue(place).outbox], argv);
  }

  async postpone(place: string, parcels: readonly Parcel[]): Promise<void> {
    const until = floorSeconds(this.clock.now()) + POSTPONED_SECONDS;
    const argv = [String(until), ...parcels.flatMap(({ key, body }) => [key, body])];
    await this.scripts.run('monitor', 'postpone', [this.keyspace.queue(place).outbox], argv);
  }

  async check(queue: string, ids: readonly string[]): Promise<Caused> {
    let all = NOTHING;
    for (let first = 0; first < ids.length; first += CHECKED_AT_ONCE) {
      const argv = this.arguments(queue).concat(ids.slice(first, first + CHECKED_AT_ONCE));
      const keys = queueKeys('check', this.keyspace.queue(queue));
      all = joined(all, readCaused(queue, (await this.scripts.run('monitor', 'check', keys, argv)) as Buffer));
    }
    return all;
  }

  async waitOf(queue: string, id: string): Promise<StoredWait | undefined> {
    const keys = this.keyspace.queue(queue);
    const reply = await this.scripts.run('monitor', 'readWait', [keys.task(id), keys.archived], [id, WAITING_GROUP]);
    return readWait(reply as Buffer[]);
  }

  async places(): Promise<string[]> {
    await this.findLost();
    const listed = await this.connections.run('monitor', 'SMEMBERS', (client) => client.smembers(this.keyspace.linked));
    return listed.concat(await this.listAgain(new Set(listed)));
  }

  /**
   * What this process has seen in the list and is no longer there: somebody has found that it has nothing to keep, or Redis has
   * lost the list, which is in another slot. Returns the places that have something.
   */
  private async listAgain(listed: ReadonlySet<string>): Promise<string[]> {
    const again: string[] = [];
    const now = this.clock.now();
    for (const [place, at] of this.seen) {
      if (listed.has(place)) continue;
      const isUsed = await this.isUsed(place).catch(() => undefined); // its node is away: the next call asks again
      if (isUsed) again.push(place);
      else if (isUsed === false && now - at > LOOK_AGAIN_MS) this.seen.delete(place);
    }
    if (again.length > 0) {
      await this.connections.run('monitor', 'SADD', (client) => client.sadd(this.keyspace.linked, ...again));
    }
    for (const place of [...listed, ...again]) this.seen.set(place, now);
    return again;
  }

  /**
   * Lists places again that Redis has forgotten, now and then: the list is in another slot than they
   * are, and may be lost without them.
   */
  private async findLost(): Promise<void> {
    const now = this.clock.now();
    if (now < this.nextSearch) return;
    const isFirst = this.nextSearch === 0;
    this.nextSearch = now + SEARCH_EVERY_MS * (0.5 + Math.random());
    if (isFirst) return;
    const { queues, linked } = this.keyspace;
    const names = await this.connections.run('monitor', 'SMEMBERS', (client) => client.smembers(queues));
    for (const queue of names) {
      if (!(await this.isUsed(queue))) continue;
      await this.connections.run('monitor', 'SADD', (client) => client.sadd(linked, queue));
    }
  }

  private async isUsed(place: string): Promise<boolean> {
    const { links, outbox, timers, waitingTasks } = this.keyspace.queue(place);
    const used = (client: RedisClient) => client.exists(links, outbox, timers, waitingTasks);
    return (await this.connections.run('monitor', 'EXISTS', used)) > 0;
  }

  async lease(place: string, owner: string, ttl: number): Promise<boolean> {
    const { linksLease } = this.keyspace.queue(place);
    const argv = [owner, String(Math.ceil(ttl)), String(Math.floor(this.clock.now()))];
    return (await this.scripts.run('monitor', 'leasePlace', [linksLease], argv)) === 1;
  }

  async keep(place: string, age: number): Promise<PassReply> {
    const argv = this.arguments(place).concat([String(age), String(KEPT_AT_ONCE), String(BYTES_AT_ONCE)]);
    const keys = queueKeys('keep', this.keyspace.queue(place));
    const reply = await this.scripts.run('monitor', 'keep', keys, argv);
    const [settled, empty, caused, old, shown, damage] = reply as [number, number, Buffer, Buffer, number, Buffer];
    if (empty === 2) await this.unlist(place);
    // Somebody has removed the queue, Go's command say, and it has runs and waits all the same: nobody should lose sight of them.
    if (shown > 0) await this.list(place);
    const late = readCaused(place, old);
    const all = joined(readCaused(place, caused), late);
    return { settled, late: late.parcels.length, empty: empty > 0, ...all, ...damaged(place, damage) };
  }

  /** Somebody may have made a link in this moment, and have listed the place before: it is listed again. */
  private async unlist(place: string): Promise<void> {
    const { linked } = this.keyspace;
    this.registrar.forget(place);
    await this.connections.run('monitor', 'SREM', (client) => client.srem(linked, place));
    if (!(await this.isUsed(place))) return;
    await this.connections.run('monitor', 'SADD', (client) => client.sadd(linked, place));
  }

  /** The arguments that every script of links begins with. */
  private arguments(place: string): Argument[] {
    const now = this.clock.now();
    return [this.keyspace.queue(place).taskPrefix, String(floorSeconds(now)), nanoseconds(now)];
  }
}

const unknownKind = (place: string, kind: string): Error =>
  new UndecodableMessageError(
    `"${place}" has got a parcel of the kind "${kind}", which this version does not know; update all processes. ` +
      'The parcel is kept, and tried again every minute',
  );

/** What a script could not read, if anything: see L.guard of links.lua. */
function damaged(place: string, text: Buffer): Pick<Caused, 'damage'> {
  if (text.length === 0) return {};
  const message = `a record of links in "${place}" is damaged: ${String(text)}. Find out what else writes to its keys`;
  return { damage: new UndecodableMessageError(message) };
}
