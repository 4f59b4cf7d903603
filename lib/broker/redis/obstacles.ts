import { type Clock, floorSeconds } from '../../clock.js';
import { decodeServerInfo, decodeWorkerInfo } from '../../wire/codec.js';
import type { Keyspace } from '../../wire/keys.js';
import type { StartLimit } from '../limiting.js';
import {
  type HeldTokens,
  MAX_COUNTED_AHEAD,
  MAX_HOLDERS,
  type ObservedServer,
  type ObstaclesRole,
  servedBy,
  type StartsLeft,
  type TaskPosition,
} from '../obstacles.js';
import { decodeProfile } from '../server-profile.js';
import type { RedisConnections } from './connection/connections.js';
import { attempt } from './publications.js';
import { nanoseconds, readScore } from './scripts/arguments.js';
import type { Scripts } from './scripts/scripts.js';

type PositionReply = readonly [number, number, number, ahead: number, lease: Buffer, waitlist: Buffer, before: number];
type ServerReply = readonly [] | readonly [info: Buffer, profile: Buffer, expires: Buffer, workers: Buffer[]];

/** A score is cut to the second: on average it is half a second early. */
const CUT_MS = 500;

/** Reads what may keep tasks from running, over the connection `monitor`. */
export class RedisObstacles implements ObstaclesRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  async position(queue: string, id: string): Promise<TaskPosition> {
    const keys = this.keyspace.queue(queue);
    const read = [keys.task(id), keys.pending, keys.paused, keys.lease, keys.retry, keys.active];
    const argv = [id, String(MAX_COUNTED_AHEAD), keys.waiting('')];
    const reply = (await this.scripts.run('monitor', 'readPosition', read, argv)) as PositionReply;
    const [isPaused, pendingCount, activeCount, ahead, leaseEnd, waitlist, before] = reply;
    return {
      paused: isPaused === 1,
      pending: pendingCount,
      active: activeCount,
      ahead: ahead < 0 ? undefined : ahead,
      leaseEnd: leaseEnd.length > 0 ? readScore(leaseEnd.toString()) : undefined,
      waitlist: before < 0 ? undefined : { name: waitlist.toString() || undefined, ahead: before },
    };
  }

  async observeServers(): Promise<ObservedServer[]> {
    const { servers } = this.keyspace;
    const flat = await this.connections.run('monitor', 'ZRANGE', (client) =>
      client.zrange(servers, '0', '-1', 'WITHSCORES'),
    );
    const names = flat.flatMap((name, index) => (index % 2 === 0 ? [{ name, score: flat[index + 1]! }] : []));
    const read = names.map(({ name, score }) => this.observe(name, readScore(score)));
    return (await Promise.all(read)).filter((server) => server !== undefined);
  }

  /** The members of the index are the keys of the servers, so that SORT reads all of them at once. */
  async servedQueues(): Promise<ReadonlySet<string>> {
    if (this.connections.isCluster) return servedBy((await this.observeServers()).map(({ info }) => info));
    const published = await this.connections.run('monitor', 'SORT', (client) =>
      client.callBuffer('SORT', this.keyspace.servers, 'BY', 'nosort', 'GET', '*'),
    );
    const infos = published as readonly (Buffer | null)[];
    return servedBy(infos.flatMap((bytes) => (bytes && attempt(() => decodeServerInfo(bytes))) ?? []));
  }

  async heldTokens(scope: string): Promise<HeldTokens> {
    const key = this.keyspace.semaphore(scope);
    const now = floorSeconds(this.clock.now());
    const [count, flat] = await Promise.all([
      this.connections.run('monitor', 'ZCOUNT', (client) => client.zcount(key, now, '+inf')),
      this.connections.run('monitor', 'ZRANGEBYSCORE', (client) =>
        client.zrangebyscore(key, now, '+inf', 'WITHSCORES', 'LIMIT', 0, MAX_HOLDERS),
      ),
    ]);
    const holders = flat.flatMap((holder, index) =>
      index % 2 === 0 ? [{ holder, until: readScore(flat[index + 1]!) }] : [],
    );
    return { count, holders };
  }

  startsLeft(scope: string, limit: StartLimit): Promise<StartsLeft> {
    return this.readStarts(this.keyspace.starts(scope, limit.window), limit);
  }

  queueStartsLeft(queue: string, limit: StartLimit): Promise<StartsLeft> {
    return this.readStarts(this.keyspace.queue(queue).rate(limit.window), limit);
  }

  private async readStarts(key: string, { max, window }: StartLimit): Promise<StartsLeft> {
    const argv = [String(max), String(window), nanoseconds(this.clock.now())];
    const [left, moreIn] = (await this.scripts.run('monitor', 'startsLeft', [key], argv)) as [number, number];
    return { left, moreIn };
  }

  /**
   * A server writes its entry of the index with its own clock, and its state for as long with that of Redis: the difference of the
   * two ends is that of the clocks.
   */
  private async observe(name: string, score: number): Promise<ObservedServer | undefined> {
    const { servers, workers, profiles } = this.keyspace;
    const identity = name.slice(servers.length);
    const keys = [name, workers + identity, profiles + identity];
    const reply = (await this.scripts.run('monitor', 'observeServer', keys, [])) as ServerReply;
    if (reply.length === 0) return undefined;
    const [bytes, profile, expires, values] = reply;
    const info = attempt(() => decodeServerInfo(bytes));
    if (!info) return undefined;
    const clockAhead = Math.round(score * 1000 + CUT_MS - Number(expires.toString()));
    return {
      info,
      workers: values.flatMap((value) => attempt(() => decodeWorkerInfo(value)) ?? []),
      profile: profile.length > 0 ? decodeProfile(profile) : undefined,
      clockAhead: Number.isFinite(clockAhead) ? clockAhead : undefined,
    };
  }
}
