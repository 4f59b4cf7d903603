import { type Clock, floorSeconds } from '../../clock.js';
import {
  decodeSchedulerEnqueueEvent,
  decodeSchedulerEntry,
  decodeServerInfo,
  decodeWorkerInfo,
} from '../../wire/codec.js';
import type { Keyspace } from '../../wire/keys.js';
import type { SchedulerEnqueueEvent, SchedulerEntry } from '../../wire/message.js';
import type { PublicationsRole, PublishedServer } from '../inspection.js';
import type { RedisConnections } from './connection/connections.js';

/**
 * Index entries that were not renewed for this time are removed. Go's readers remove them at once.
 */
const STALE_INDEX_SECONDS = 3_600;

/**
 * Reads what servers and schedulers publish. All names of the index are read, and those that have
 * not expired count: Redis' own clock decides, so that no skewed clock hides a server. Bytes that
 * cannot be decoded are left out.
 */
export class RedisPublications implements PublicationsRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  async servers(): Promise<PublishedServer[]> {
    const { servers, workers } = this.keyspace;
    const names = await this.index(servers);
    const read = names.map((name) => this.readServer(name, workers + name.slice(servers.length)));
    return (await Promise.all(read)).filter((server) => server !== undefined);
  }

  /** The entries of a scheduler in the order of its list; Go pushes them to the head. */
  async schedulerEntries(): Promise<SchedulerEntry[]> {
    const names = await this.index(this.keyspace.schedulers);
    const read = names.map(async (name) => {
      const entries = await tolerant(
        this.connections.run('monitor', 'LRANGE', (client) => client.lrangeBuffer(name, 0, -1)),
        [],
      );
      return entries.flatMap((bytes) => attempt(() => decodeSchedulerEntry(bytes)) ?? []);
    });
    return (await Promise.all(read)).flat();
  }

  async enqueueEvents(entryId: string, offset: number, size: number): Promise<SchedulerEnqueueEvent[]> {
    const key = this.keyspace.schedulerHistory(entryId);
    const events = await this.connections.run('monitor', 'ZREVRANGE', (client) =>
      client.zrevrangeBuffer(key, offset, offset + size - 1),
    );
    return events.flatMap((bytes) => attempt(() => decodeSchedulerEnqueueEvent(bytes)) ?? []);
  }

  private async index(key: string): Promise<string[]> {
    const gone = floorSeconds(this.clock.now()) - STALE_INDEX_SECONDS;
    await this.connections.run('monitor', 'ZREMRANGEBYSCORE', (client) => client.zremrangebyscore(key, '-inf', gone));
    return this.connections.run('monitor', 'ZRANGE', (client) => client.zrange(key, '0', '-1'));
  }

  private async readServer(server: string, workers: string): Promise<PublishedServer | undefined> {
    const [bytes, values] = await Promise.all([
      tolerant(
        this.connections.run('monitor', 'GET', (client) => client.getBuffer(server)),
        null,
      ),
      tolerant(
        this.connections.run('monitor', 'HVALS', (client) => client.hvalsBuffer(workers)),
        [],
      ),
    ]);
    const info = bytes && attempt(() => decodeServerInfo(bytes));
    if (!info) return undefined;
    return { info, workers: values.flatMap((value) => attempt(() => decodeWorkerInfo(value)) ?? []) };
  }
}

/** `undefined` when the bytes cannot be decoded. */
export function attempt<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}

/**
 * The value of a key, or `otherwise` when it has another type: one such key must not hide all
 * others.
 */
export async function tolerant<T>(reading: Promise<T>, otherwise: T): Promise<T> {
  return reading.catch((error: unknown) => {
    if (error instanceof Error && error.cause instanceof Error && error.cause.message.startsWith('WRONGTYPE')) {
      return otherwise;
    }
    throw error;
  });
}
